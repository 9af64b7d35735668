"""The heat map of a table as a picture in a file. The page shows the same as a table of its own."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from postmax.extras import need
from postmax.report.pictures.canvas import INK, TITLE_HEIGHT, new_figure, short
from postmax.report.table.distances import HeatMap
from postmax.report.table.heat_view import mean_words, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The last colour of the scale on a white sheet; the first is white. INK is legible on both (page.css has the same).
FAR = "#e58a3c"
# In inches: the least width and the height of a cell, and the width of a letter of a name.
_WIDE, _TALL, _LETTER = 0.6, 0.27, 0.085


def heat_figure(heat: HeatMap, caption: str) -> Figure:
    """Return the heat map of a panel, with its mean distances and a text that says how to read it."""
    names = [short(row, 28) for row in heat.rows]
    heads = ["\n".join(textwrap.wrap(short(column, 40), 11)[:3]) for column in heat.columns]
    by_row = any(row in heat.means for row in heat.rows)
    left, top = 0.3 + _LETTER * max(map(len, names)), 0.1 + 0.17 * max(head.count("\n") + 1 for head in heads)
    cell = max(_WIDE, 0.1 + 0.075 * max(len(line) for head in heads for line in head.split("\n")))
    wide, tall = cell * (len(heads) + by_row), _TALL * (len(names) + (not by_row))
    lines = textwrap.wrap(caption, int((left + wide) / 0.078))
    height, width = top + tall + 0.25 + 0.2 * len(lines), left + wide + 0.15
    figure = new_figure(height, heat.title, width=width)
    whole = height + TITLE_HEIGHT
    axes = figure.add_axes((left / width, (height - top - tall) / whole, wide / width, tall / whole))
    _draw(axes, heat, by_row)
    axes.set_xticks(range(len(heads) + by_row), [*heads, "mean"][: len(heads) + by_row], linespacing=0.95)
    axes.set_yticks(range(len(names) + (not by_row)), [*names, "mean"][: len(names) + (not by_row)])
    axes.tick_params(length=0, labelsize=9.5, top=True, labeltop=True, bottom=False, labelbottom=False)
    figure.text(0.15 / width, (height - top - tall - 0.1) / whole, "\n".join(lines), va="top", fontsize=10)
    return figure


def _draw(axes: Axes, heat: HeatMap, by_row: bool) -> None:
    mix = need("matplotlib.colors", "plot").LinearSegmentedColormap.from_list("distance", ("#ffffff", FAR))
    rectangle = need("matplotlib.patches", "plot").Rectangle
    axes.set(xlim=(-0.5, len(heat.columns) + by_row - 0.5), ylim=(len(heat.rows) + (not by_row) - 0.5, -0.5))
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for i, row in enumerate(heat.rows):
        for j, column in enumerate(heat.columns):
            one = heat.cells.get((row, column))
            if one is None:
                continue
            look = {"facecolor": "#ffffff", "hatch": "////", "edgecolor": "#b0b0b0", "linewidth": 0.0}
            if one.points is not None:
                look = {"facecolor": mix(heat.shade(one.points)), "edgecolor": "#ffffff", "linewidth": 0.8}
            axes.add_patch(rectangle((j - 0.5, i - 0.5), 1, 1, **look))
            if one.as_good:
                axes.add_patch(rectangle((j - 0.42, i - 0.4), 0.84, 0.8, fill=False, edgecolor=INK, linewidth=0.9))
            _write(axes, j, i, words(one), bold=one.best)
    for k, name in enumerate(heat.rows if by_row else heat.columns):
        _write(axes, *((len(heat.columns), k) if by_row else (k, len(heat.rows))), mean_words(heat, name), bold=False)


def _write(axes: Axes, x: float, y: float, text: str, *, bold: bool) -> None:
    axes.text(x, y, text, ha="center", va="center", fontsize=9.5, weight="bold" if bold else "normal")
