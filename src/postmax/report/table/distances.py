"""How far each cell of a table is from the best cell that it is compared with: the numbers of the heat map."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from postmax.tables.table import Cell, Panel, Table

# A table with more columns or cells than this is drawn as a heat map: so many colours or dots cannot be told apart.
MOST_COLUMNS, MOST_CELLS = 8, 100
# The colour scale ends at one of these distances, the first that covers this share of all cells.
_ENDS = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0)
_COVERED = 0.9


@dataclass(frozen=True)
class Distance:
    """The distance of one cell.

    Attributes:
        points: The mean of the best cell minus the mean of this one, in points of accuracy; None if the cell has no
            value. It is negative for a cell that is above the best and does not compete, such as a reference.
        best: Whether it is the best.
        as_good: Whether it is within one standard error of the best, that of the mean of the best.
        failed: Whether seeds of the cell diverged.
    """

    points: float | None
    best: bool = False
    as_good: bool = False
    failed: bool = False


@dataclass(frozen=True)
class HeatMap:
    """The distances of a panel.

    Attributes:
        title: The title of the panel.
        rows: The rows, from top to bottom.
        columns: The columns, from left to right.
        cells: The distances, by row and column. A combination that is not run has none.
        means: The mean distance of each row, or of each column if columns compete; None where a cell has no value.
        end: Where the colour scale ends. Larger distances have its last colour.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Distance]
    means: dict[str, float | None]
    end: float

    def shade(self, points: float) -> float:
        """Return the place of a distance on the colour scale, from 0 to 1."""
        return min(1.0, max(0.0, points / self.end))

    def ranked(self) -> HeatMap:
        """Return the same with the rows sorted by their mean distance. Rows that lack a value come last."""
        order = sorted(self.rows, key=lambda row: _or_infinite(self.means.get(row)))
        return HeatMap(self.title, tuple(order), self.columns, self.cells, self.means, self.end)


def is_large(table: Table) -> bool:
    """Return whether a table is too large for a dot with a colour for each cell."""
    return any(
        len(panel.columns) > MOST_COLUMNS or len(panel.rows) * len(panel.columns) > MOST_CELLS for panel in table.panels
    )


def heat_maps(table: Table) -> list[HeatMap]:
    """Return the distances of each panel that has values. All panels share one colour scale."""
    panels = [panel for panel in table.panels if any(cell.values for cell in panel.cells.values())]
    found = [_distances(panel, table.compare) for panel in panels]
    end = _end(one.points for cells in found for one in cells.values() if one.points is not None)
    return [
        HeatMap(panel.title, panel.rows, panel.columns, cells, _means(panel, cells, table.compare), end)
        for panel, cells in zip(panels, found, strict=True)
    ]


def _distances(panel: Panel, compare: str) -> dict[tuple[str, str], Distance]:
    by_contest: dict[str, dict[tuple[str, str], Cell]] = {}
    for (row, column), cell in panel.cells.items():
        by_contest.setdefault(column if compare == "rows" else row, {})[row, column] = cell
    return {key: _distance(cell, _best(cells.values())) for cells in by_contest.values() for key, cell in cells.items()}


def _best(cells: Iterable[Cell]) -> Cell | None:
    """Return the best of the cells that compete; without a contest, the highest mean of a cell with all its seeds."""
    cells = list(cells)
    found = [cell for cell in cells if cell.best] or [cell for cell in cells if cell.complete]
    return max(found, key=lambda cell: cell.mean, default=None)


def _distance(cell: Cell, best: Cell | None) -> Distance:
    if not cell.values or best is None:
        return Distance(None, failed=cell.failed > 0)
    points = round(best.mean - cell.mean, 9)
    as_good = cell.complete and 0 <= points <= _standard_error(best)
    return Distance(points, best=cell.complete and points == 0, as_good=as_good, failed=cell.failed > 0)


def _standard_error(cell: Cell) -> float:
    """Return the standard error of the mean. Where the seeds split the same rows, it allows for their overlap."""
    return cell.std * math.sqrt(1 / cell.n + cell.overlap) if cell.n > 1 else 0.0


def _end(distances: Iterable[float]) -> float:
    """Return where the colours end. A few cells that are far off must not make all others look alike."""
    ordered = sorted(max(0.0, points) for points in distances)
    covered = ordered[math.ceil(_COVERED * len(ordered)) - 1] if ordered else 0.0
    return next((end for end in _ENDS if end >= covered), _ENDS[-1])


def _means(panel: Panel, cells: dict[tuple[str, str], Distance], compare: str) -> dict[str, float | None]:
    lines: dict[str, list[float | None]] = {}
    for (row, column), one in cells.items():
        lines.setdefault(row if compare == "rows" else column, []).append(one.points)
    full = len(panel.columns if compare == "rows" else panel.rows)
    return {name: _mean(points) if len(points) == full else None for name, points in lines.items()}


def _mean(points: list[float | None]) -> float | None:
    values = [value for value in points if value is not None]
    return math.fsum(values) / len(values) if len(values) == len(points) else None


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else value
