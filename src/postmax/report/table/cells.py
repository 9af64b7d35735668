"""Facts about cells that both the summary and the tables of a page need."""

from __future__ import annotations

from postmax.tables.table import Cell, Table


def named_cells(table: Table) -> list[tuple[str, Cell]]:
    """Return every cell together with a name that people understand: row, column and panel."""
    return [
        (", ".join(part for part in (row, column, panel.title) if part), cell)
        for panel in table.panels
        for (row, column), cell in panel.cells.items()
    ]


def gap(table: Table, cell: Cell, digits: int) -> float | None:
    """Return the mean minus the reported value, rounded as printed; None where they cannot be compared."""
    apart = table.difference(cell)
    return None if apart is None else round(apart, digits)
