"""All plots of the page of a table."""

from __future__ import annotations

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
from postmax.tables.table import Table

# The most plots of a kind, lines of a plot, and matrices that a page shows. More could not be read.
_GROUPS = 16
_SERIES = 8
_MATRICES = 9


@dataclass(frozen=True)
class TablePictures:
    """The plots of the page of a table, their common legend, and a sentence about what is not drawn."""

    key: Legend
    accuracy: list[Picture]
    curves: list[Picture]
    more_curves: list[Picture]
    noise: list[Picture]
    reliability: list[Picture]
    left_out: str = ""


def draw(content: TableContent, headline: Table, folder: Path) -> TablePictures:
    """Write the files of all plots into a folder, and return the plots for the page."""
    groups = [Group(one.panel, one.row, one.series[:_SERIES]) for one in content.groups[:_GROUPS]]
    chosen = _colours(headline, groups)
    with house_style():
        first, more = curve_pictures(groups, chosen, folder)
        return TablePictures(
            key=tuple((short(label), colour) for label, colour in chosen.items()),
            accuracy=_accuracy(headline, chosen, folder),
            curves=first,
            more_curves=more,
            noise=transition_pictures(content.matrices[:_MATRICES], folder),
            reliability=reliability_pictures(groups, chosen, folder),
            left_out=_left_out(content),
        )


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


def _left_out(content: TableContent) -> str:
    """Return a sentence about what is not drawn; empty if everything is."""
    parts = []
    if len(content.groups) > _GROUPS:
        parts.append(f"{len(content.groups) - _GROUPS} more rows")
    if any(len(group.series) > _SERIES for group in content.groups):
        parts.append(f"columns after the first {_SERIES}")
    if len(content.matrices) > _MATRICES or any(len(one.classes) > MOST_CLASSES for one in content.matrices):
        parts.append(f"matrices after the first {_MATRICES} or of more than {MOST_CLASSES} classes")
    return f"Not drawn: {', '.join(parts)}." if parts else ""
