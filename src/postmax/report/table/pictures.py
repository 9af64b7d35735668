"""All plots of the page of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from postmax.report.content import Group
from postmax.report.pictures.canvas import colours, house_style, short
from postmax.report.pictures.gallery import (
    Colours,
    Legend,
    Picture,
    Pile,
    curve_pictures,
    reliability_pictures,
    transition_pictures,
)
from postmax.report.pictures.transition import MOST_CLASSES
from postmax.report.table import accuracy
from postmax.report.table.content import TableContent
from postmax.report.table.distances import HeatMap, heat_maps, is_large
from postmax.report.table.heat_figure import heat_figure
from postmax.report.table.heat_view import FRAMES, HeatView, caption, heat_view
from postmax.tables.table import Table

# The most plots of a kind, lines of a plot, and matrices that a page shows. More could not be read.
_GROUPS = 16
_SERIES = 8
_MATRICES = 9


# A large table says most in its heat map, so it gets fewer other plots. They would take most of the time, too.
_GROUPS_OF_A_LARGE_TABLE = 6
_MATRICES_OF_A_LARGE_TABLE = 4


@dataclass(frozen=True)
class TablePictures:
    """The plots of the page of a table.

    Attributes:
        key: The colours of the columns that are drawn.
        accuracy: A dot for each cell; empty if the table is large.
        heat: The heat map of a large table.
        curves: The learning curves.
        more_curves: Further curves that explain them.
        noise: The transition matrices.
        reliability: The reliability diagrams.
        chosen: Which rows and columns the curves and diagrams show; empty if they show all.
        left_out: A sentence about what is not drawn; empty if everything is.
    """

    key: Legend
    accuracy: list[Picture]
    heat: HeatView | None
    curves: list[Picture]
    more_curves: list[Picture]
    noise: list[Picture]
    reliability: list[Picture]
    chosen: str = ""
    left_out: str = ""


def draw(content: TableContent, headline: Table, folder: Path) -> TablePictures:
    """Write the files of all plots into a folder, and return the plots for the page."""
    large = is_large(headline)
    heats = heat_maps(headline) if large else []
    kept = _nearest(content.groups, heats) if large else content.groups[:_GROUPS]
    matrices = content.matrices[: _MATRICES_OF_A_LARGE_TABLE if large else _MATRICES]
    groups = [Group(one.panel, one.row, one.series[:_SERIES]) for one in kept]
    shades = _colours(headline, groups)
    if large:
        drawn = {series.label for group in groups for series in group.series}
        shades = {label: colour for label, colour in shades.items() if label in drawn}
    with house_style():
        first, more = curve_pictures(groups, shades, folder)
        if heats:
            save_heat_maps(headline, folder / "distances")
        return TablePictures(
            key=tuple((short(label), colour) for label, colour in shades.items()),
            accuracy=[] if large else _accuracy(headline, shades, folder),
            heat=heat_view(headline) if heats else None,
            curves=first,
            more_curves=more,
            noise=transition_pictures(matrices, folder),
            reliability=reliability_pictures(groups, shades, folder),
            chosen=_chosen(content, groups) if large else "",
            left_out=_left_out(content, len(groups), len(matrices)),
        )


def save_heat_maps(table: Table, path: Path) -> None:
    """Write the heat maps of a table, one below the other, as path.svg and path.png."""
    pile, found = Pile(), heat_maps(table)
    with house_style():
        for heat in found:
            pile.add(heat_figure(heat, f"{caption(table, found)} {FRAMES}"), "distances", heat.title)
        pile.save(path, 1, {})


def _nearest(groups: Sequence[Group], heats: Sequence[HeatMap]) -> list[Group]:
    """Return the rows with the smallest mean distance from the best, in the order of the table."""
    means = {(heat.title, row): heat.means.get(row) for heat in heats for row in heat.rows}
    distances = [mean if (mean := means.get((one.panel, one.row))) is not None else math.inf for one in groups]
    order = sorted(range(len(groups)), key=distances.__getitem__)
    return [groups[place] for place in sorted(order[:_GROUPS_OF_A_LARGE_TABLE])]


def _chosen(content: TableContent, groups: Sequence[Group]) -> str:
    if len(groups) == len(content.groups) and not any(len(one.series) > _SERIES for one in content.groups):
        return ""
    return f"Drawn for the {len(groups)} rows that are nearest to the best, in the first {_SERIES} columns."


def _colours(headline: Table, groups: Sequence[Group]) -> dict[str, str]:
    labels = [column for panel in headline.panels for column in panel.columns]
    labels += [series.label for group in groups for series in group.series]
    references = frozenset(series.label for group in groups for series in group.series if series.reference)
    return colours(tuple(dict.fromkeys(labels)), references)


def _accuracy(headline: Table, chosen: Colours, folder: Path) -> list[Picture]:
    pile = Pile()
    pictures = []
    for panel in headline.panels:
        if any(cell.values for cell in panel.cells.values()):
            figure = accuracy.accuracy_figure(panel, chosen)
            pictures.append(Picture(panel.title, pile.add(figure, "accuracy", accuracy.in_words(panel))))
    pile.save(folder / "accuracy", 2, chosen)
    return pictures


def _left_out(content: TableContent, drawn: int, matrices: int) -> str:
    """Return a sentence about what is not drawn; empty if everything is."""
    parts = []
    if len(content.groups) > drawn:
        parts.append(f"{len(content.groups) - drawn} more rows")
    if any(len(group.series) > _SERIES for group in content.groups):
        parts.append(f"columns after the first {_SERIES}")
    if len(content.matrices) > matrices:
        parts.append(f"matrices after the first {matrices}")
    if any(len(one.classes) > MOST_CLASSES for one in content.matrices):
        parts.append(f"matrices of more than {MOST_CLASSES} classes")
    return f"Not drawn: {', '.join(parts)}." if parts else ""
