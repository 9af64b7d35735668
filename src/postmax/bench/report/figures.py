"""What both the sentence on top and the tables say about cells."""

from __future__ import annotations

from collections.abc import Sequence

from postmax.bench.table import Cell, Table

RULES = {
    "last": "last epoch",
    "noisy-val": "best epoch on noisy validation labels",
    "oracle": "best epoch on the test set: nobody can choose it without the truth",
}


def ordered(tables: Sequence[Table]) -> list[Table]:
    """The headline first, what nobody can choose last."""
    order = list(RULES)
    return sorted(tables, key=lambda table: order.index(table.selection) if table.selection in order else len(order))


def cells(table: Table) -> list[tuple[str, Cell]]:
    """Every cell with what a person calls it."""
    return [
        (", ".join(part for part in (row, column, panel.title) if part), cell)
        for panel in table.panels
        for (row, column), cell in panel.cells.items()
    ]


def gap(cell: Cell, digits: int) -> float | None:
    """Ours minus the paper's, as printed: what rounds to the paper's figure does not differ from it."""
    return None if cell.difference is None else round(cell.difference, digits)


def counted(values: set[int]) -> str:
    """One number, or from the least to the most."""
    return str(min(values)) if len(values) == 1 else f"{min(values)}–{max(values)}"


def duration(seconds: float) -> str:
    """As a person says it.

    Example:
        >>> duration(151), duration(8000)
        ('2 min 31 s', '2 h 13 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
