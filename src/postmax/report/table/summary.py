"""The sentence at the top of a table's page: the main result, and what is missing in it."""

from __future__ import annotations

from collections import Counter

from postmax.report.numbers import from_to, signed
from postmax.report.selection_words import SELECTION_IN_WORDS
from postmax.report.table.cells import gap, named_cells
from postmax.report.table.text import decimals, failures
from postmax.tables.table import Cell, Table

_Named = list[tuple[str, Cell]]


def summary(table: Table) -> str:
    """Return how the results compare with the reported values, or which results are best if they cannot be compared.

    Example:
        >>> from postmax.tables.table import Cell, Panel, Table
        >>> cell = Cell(values=(95.0, 97.0), paper=95.6)
        >>> panel = Panel("low noise", ("KL",), ("none",), {("KL", "none"): cell})
        >>> summary(Table("t", "T", "cpu", "last", "rows", (panel,)))
        'Not below the paper in the only cell with a reported value (mean of 2 seeds, cpu scale, last epoch).'
    """
    everything = named_cells(table)
    filled = [(name, cell) for name, cell in everything if cell.values]
    if not filled:
        return "Nothing has been measured yet."
    if any(table.difference(cell) is not None for _, cell in filled):
        sentence = _against_paper(table, filled)
    elif not (table.comparable and _reported(everything)) and (best := _best(table)):
        sentence = best
    else:
        sentence = _without_paper(table, filled)
    return f"{sentence} ({_basis(table, filled)}).{_missing(everything)}"


def _against_paper(table: Table, filled: _Named) -> str:
    digits = decimals(table)
    compared = [(name, cell) for name, cell in filled if cell.paper is not None]
    gaps = {name: (gap(table, cell, digits) or 0.0, cell) for name, cell in compared}
    below = {name: pair for name, pair in gaps.items() if pair[0] < 0}
    total = len(compared)
    if not below:
        where = (
            "the only cell with a reported value" if total == 1 else f"any of the {total} cells with a reported value"
        )
        return f"Not below the paper in {where}"
    name, (short, cell) = min(below.items(), key=lambda item: item[1][0])
    worst = f"{signed(short, digits)} points in {name}: {cell.mean:.{digits}f} against {cell.paper:.{digits}f}"
    which = "the largest shortfall is" if len(below) > 1 else "the shortfall is"
    return f"At or above the paper in {total - len(below)} of {total} cells; {which} {worst}"


def _best(table: Table) -> str:
    """Return how often each row or column is the best; empty if nothing is marked."""
    wins: Counter[str] = Counter()
    contests = set()
    for panel in table.panels:
        for (row, column), cell in panel.cells.items():
            if cell.best:
                winner, contest = (column, row) if table.compare == "columns" else (row, column)
                wins[winner] += 1
                contests.add((panel.title, contest))
    found = ", ".join(f"{name} in {count} of {len(contests)}" for name, count in wins.most_common())
    return f"Best in each {table.along}: {found}" if found else ""


def _without_paper(table: Table, filled: _Named) -> str:
    digits = decimals(table)
    name, cell = max(filled, key=lambda item: (item[1].complete, item[1].mean))
    if len(filled) == 1:
        return f"Test accuracy {cell.mean:.{digits}f} %"
    highest = f"The highest mean is {cell.mean:.{digits}f} %, in {name}"
    if not _reported(filled):
        return highest
    return f"{highest}; the paper reports no {'value for it' if table.comparable else 'comparable value'}"


def _reported(cells: _Named) -> bool:
    return any(cell.paper is not None for _, cell in cells)


def _basis(table: Table, filled: _Named) -> str:
    seeds = {cell.n for _, cell in filled}
    number = from_to(seeds)
    mean = "one seed" if number == "1" else f"mean of {number} seeds"
    return f"{mean}, {table.scale} scale, {SELECTION_IN_WORDS[table.selection]}"


def _missing(everything: _Named) -> str:
    """Return sentences about failed seeds and empty cells, because the mean of the other seeds does not show them."""
    failed = sum(cell.failed for _, cell in everything)
    empty = sum(not cell.values for _, cell in everything)
    text = ""
    if failed:
        text += f" {failures(failed)} and {'is' if failed == 1 else 'are'} not part of any mean."
    if empty:
        text += f" {empty} of {len(everything)} cells {'has' if empty == 1 else 'have'} no result."
    return text
