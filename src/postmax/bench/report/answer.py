"""The sentence on top: what came out, with what speaks against it."""

from __future__ import annotations

from postmax.bench.report.figures import RULES, cells, counted, gap
from postmax.bench.table import Cell, Table
from postmax.bench.text import decimals, signed

_Named = list[tuple[str, Cell]]


def answer(table: Table) -> str:
    """How ours compares with the paper's figures, the largest shortfall named.

    Example:
        >>> from postmax.bench.table import Cell, Panel, Table
        >>> cell = Cell(values=(95.0, 97.0), paper=95.6)
        >>> panel = Panel("low noise", ("KL",), ("none",), {("KL", "none"): cell})
        >>> answer(Table("t", "T", "cpu", "last", "rows", (panel,)))
        'Not below the paper in its only cell with a figure of the paper (mean of 2 seeds, cpu scale, last epoch).'
    """
    everything = cells(table)
    filled = [(name, cell) for name, cell in everything if cell.values]
    if not filled:
        return "Nothing has been measured yet."
    compared = [(name, cell) for name, cell in filled if cell.paper is not None]
    sentence = _against_paper(compared, decimals(table)) if compared else _without_paper(filled, decimals(table))
    return f"{sentence} ({_basis(table, filled)}).{_missing(everything)}"


def _against_paper(compared: _Named, digits: int) -> str:
    gaps = {name: (gap(cell, digits) or 0.0, cell) for name, cell in compared}
    below = {name: pair for name, pair in gaps.items() if pair[0] < 0}
    total = len(compared)
    if not below:
        where = "its only cell" if total == 1 else f"any of the {total} cells"
        return f"Not below the paper in {where} with a figure of the paper"
    name, (short, cell) = min(below.items(), key=lambda item: item[1][0])
    worst = f"{signed(short, digits)} points in {name}: {cell.mean:.{digits}f} against {cell.paper:.{digits}f}"
    which = "the largest shortfall is" if len(below) > 1 else "the shortfall is"
    return f"At or above the paper in {total - len(below)} of {total} cells; {which} {worst}"


def _without_paper(filled: _Named, digits: int) -> str:
    name, cell = max(filled, key=lambda item: item[1].mean)
    if len(filled) == 1:
        return f"Test accuracy {cell.mean:.{digits}f} %"
    return f"The highest mean is {cell.mean:.{digits}f} %, in {name}; the paper has no figure to compare with"


def _basis(table: Table, filled: _Named) -> str:
    seeds = {cell.n for _, cell in filled}
    number = counted(seeds)
    mean = "one seed" if number == "1" else f"mean of {number} seeds"
    return f"{mean}, {table.scale} scale, {RULES.get(table.selection, table.selection)}"


def _missing(everything: _Named) -> str:
    """Failures and gaps, which a mean of the rest would hide."""
    failed = sum(cell.failed for _, cell in everything)
    empty = sum(not cell.values for _, cell in everything)
    text = ""
    if failed:
        text += f" {failed} {'run' if failed == 1 else 'runs'} failed and {'is' if failed == 1 else 'are'} in no mean."
    if empty:
        text += f" {empty} of {len(everything)} cells {'has' if empty == 1 else 'have'} no result."
    return text
