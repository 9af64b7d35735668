"""The heat map as the page shows it: all texts are made here, so that the template only places them."""

from __future__ import annotations

from dataclasses import dataclass

from postmax.report.numbers import signed
from postmax.report.table.distances import Distance, HeatMap, heat_maps
from postmax.tables.table import Table

FRAMES = "Framed cells are within one standard error of the best, which is bold."


@dataclass(frozen=True)
class HeatCell:
    """A cell: its text, its place on the colour scale in per cent (None without a colour), and its CSS classes."""

    text: str = ""
    shade: int | None = None
    kind: str = ""


@dataclass(frozen=True)
class HeatGrid:
    """A heat map in texts, row by row. `last` is the line of means below it; empty if the means are a column."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]
    last: tuple[str, ...] = ()


@dataclass(frozen=True)
class HeatView:
    """All heat maps of a table.

    Attributes:
        caption: How to read them.
        end: The words at the end of the colour scale.
        marks: The classes of cells that need an explanation.
        grids: One for each panel, in the order of the table.
        ranked: The same with sorted rows; empty if columns compete.
    """

    caption: str
    end: str
    marks: frozenset[str]
    grids: tuple[HeatGrid, ...]
    ranked: tuple[HeatGrid, ...]


def heat_view(table: Table) -> HeatView:
    """Return the heat maps of a table in texts."""
    found, rows_compete = heat_maps(table), table.compare == "rows"
    grids = tuple(_grid(one, rows_compete) for one in found)
    capped = any(one.points is not None and one.points > heat.end for heat in found for one in heat.cells.values())
    end = found[0].end if found else 1.0
    return HeatView(
        caption=caption(table, found),
        end=f"{end:g} points{' or more' if capped else ''}",
        marks=frozenset(cell.kind for grid in grids for _, cells in grid.rows for cell in cells),
        grids=grids,
        ranked=tuple(_grid(one.ranked(), rows_compete) for one in found) if rows_compete else (),
    )


def caption(table: Table, found: list[HeatMap]) -> str:
    """Return how a heat map is read."""
    text = (
        f"Each number is the distance of a mean from the best mean of its {table.along}, in points of accuracy; 0.0 is "
        f"the best. The {'last column' if table.compare == 'rows' else 'last row'} is the mean distance."
    )
    cells = [one for heat in found for one in heat.cells.values() if one.points is not None]
    beyond = sum(one.points > heat.end for heat in found for one in heat.cells.values() if one.points is not None)
    if beyond:
        some = "1 cell is" if beyond == 1 else f"{beyond} cells are"
        text += f" The colours end at {found[0].end:g} points, so that differences between good cells stay visible; "
        text += f"{some} farther away."
    if any(one.points is not None and one.points < 0 for one in cells):
        text += " A plus is above the best: such a cell does not compete."
    return text


def words(one: Distance | None) -> str:
    """Return what is written into a cell."""
    if one is None:
        return ""
    if one.points is None:
        return "✕" if one.failed else "–"
    text = f"{one.points:.1f}" if one.points >= 0 else signed(-one.points, 1)
    return f"{text}†" if one.failed else text


def _cell(heat: HeatMap, one: Distance | None) -> HeatCell:
    if one is None:
        return HeatCell()
    if one.points is None:
        return HeatCell(words(one), kind="diverged" if one.failed else "missing")
    kind = "best" if one.best else "as-good" if one.as_good else "partial" if one.failed else ""
    return HeatCell(words(one), round(100 * heat.shade(one.points)), kind)


def _grid(heat: HeatMap, rows_compete: bool) -> HeatGrid:
    rows = []
    for row in heat.rows:
        cells = tuple(_cell(heat, heat.cells.get((row, column))) for column in heat.columns)
        rows.append((row, (*cells, HeatCell(mean_words(heat, row), kind="mean")) if rows_compete else cells))
    return HeatGrid(
        heat.title,
        (*heat.columns, "mean") if rows_compete else heat.columns,
        tuple(rows),
        () if rows_compete else tuple(mean_words(heat, column) for column in heat.columns),
    )


def mean_words(heat: HeatMap, name: str) -> str:
    """Return the mean distance of a row or column, as it is written."""
    mean = heat.means.get(name)
    return "–" if mean is None else f"{mean:.1f}" if mean >= 0 else signed(-mean, 1)
