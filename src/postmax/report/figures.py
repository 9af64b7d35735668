"""What both the sentence on top and the tables say about cells."""

from __future__ import annotations

from postmax.tables.table import Cell, Table


def cells(table: Table) -> list[tuple[str, Cell]]:
    """Every cell with what a person calls it."""
    return [
        (", ".join(part for part in (row, column, panel.title) if part), cell)
        for panel in table.panels
        for (row, column), cell in panel.cells.items()
    ]


def gap(table: Table, cell: Cell, digits: int) -> float | None:
    """Ours minus the paper's, as printed: what rounds to the paper's figure does not differ from it."""
    apart = table.difference(cell)
    return None if apart is None else round(apart, digits)


def counted(values: set[int]) -> str:
    """One number, or from the least to the most."""
    return str(min(values)) if len(values) == 1 else f"{min(values)}–{max(values)}"
