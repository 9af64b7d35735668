"""The table as a picture: each mean with its standard deviation, and the reported value as a hollow mark."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from postmax.report.pictures.canvas import INK, margins, new_figure, per_cent, short
from postmax.tables.table import Cell, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The most rows of a panel that are drawn, and the most letters of the name of a row.
_ROWS = 30
_LETTERS = 28


def draw_accuracy(axes: Axes, panel: Panel, colours: Mapping[str, str]) -> None:
    """Draw a block of lines for each row of the panel, one line for each column."""
    rows = panel.rows[:_ROWS]
    step = 1 / (len(panel.columns) + 1)
    for i, row in enumerate(rows):
        for j, column in enumerate(panel.columns):
            cell = panel.cells.get((row, column))
            if cell is not None:
                _draw_cell(axes, cell, i + (j - (len(panel.columns) - 1) / 2) * step, colours[column])
        if i:
            axes.axhline(i - 0.5, color=INK, linewidth=0.6, alpha=0.35)
    axes.set_yticks(range(len(rows)), [short(row, _LETTERS) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("test accuracy")
    per_cent(axes.xaxis, 5)


def _draw_cell(axes: Axes, cell: Cell, y: float, colour: str) -> None:
    if cell.values:
        spread = None if math.isnan(cell.std) else cell.std
        axes.errorbar(cell.mean, y, xerr=spread, fmt="o", color=colour, markersize=5, elinewidth=1.4, capsize=0)
    if cell.paper is not None:
        axes.plot(cell.paper, y, "D", markerfacecolor="none", markeredgecolor=colour, markeredgewidth=1.3, markersize=6)


def _height(panel: Panel) -> float:
    lines = min(len(panel.rows), _ROWS) * (len(panel.columns) + 1)
    return min(14.0, max(1.6, 0.17 * lines)) + 0.7


def _room(panel: Panel) -> float:
    """Return how many inches the names of the rows need."""
    return 0.25 + 0.1 * max((min(_LETTERS, len(row)) for row in panel.rows), default=0)


def accuracy_figure(panel: Panel, colours: Mapping[str, str]) -> Figure:
    """Return a panel as a figure."""
    figure = new_figure(_height(panel), panel.title)
    axes = figure.subplots()
    margins(figure, left=_room(panel), right=0.25, bottom=0.52, top=0.1)
    draw_accuracy(axes, panel, colours)
    return figure


def in_words(panel: Panel) -> str:
    """Return what the picture shows, for readers who cannot see it. The numbers are in the table."""
    papers = any(cell.paper is not None for cell in panel.cells.values())
    return (
        f"Test accuracy of each cell of {short(panel.title, 60) or 'the table'}: dots with bars of one standard "
        f"deviation{', reported values as hollow diamonds' if papers else ''}. The same numbers are in the table above."
    )
