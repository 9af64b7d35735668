"""The sentence on top: what came out, with what speaks against it."""

from __future__ import annotations

from collections import Counter

from postmax.report.figures import cells, counted, gap
from postmax.report.rules import RULES
from postmax.report.text import decimals, failures, signed
from postmax.tables.table import Cell, Table

_Named = list[tuple[str, Cell]]


def answer(table: Table) -> str:
    """How ours compares with the paper's figures, the largest shortfall named; what is best if they do not compare.

    Example:
        >>> from postmax.tables.table import Cell, Panel, Table
        >>> cell = Cell(values=(95.0, 97.0), paper=95.6)
        >>> panel = Panel("low noise", ("KL",), ("none",), {("KL", "none"): cell})
        >>> answer(Table("t", "T", "cpu", "last", "rows", (panel,)))
        'Not below the paper in its only cell with a figure of the paper (mean of 2 seeds, cpu scale, last epoch).'
    """
    everything = cells(table)
    filled = [(name, cell) for name, cell in everything if cell.values]
    if not filled:
        return "Nothing has been measured yet."
    if any(table.difference(cell) is not None for _, cell in filled):
        sentence = _against_paper(table, filled)
    elif not table.comparable and (best := _best(table)):
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
        where = "its only cell" if total == 1 else f"any of the {total} cells"
        return f"Not below the paper in {where} with a figure of the paper"
    name, (short, cell) = min(below.items(), key=lambda item: item[1][0])
    worst = f"{signed(short, digits)} points in {name}: {cell.mean:.{digits}f} against {cell.paper:.{digits}f}"
    which = "the largest shortfall is" if len(below) > 1 else "the shortfall is"
    return f"At or above the paper in {total - len(below)} of {total} cells; {which} {worst}"


def _best(table: Table) -> str:
    """What is bold how often; empty if nothing is."""
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
    why = "has no figure to compare with" if table.comparable else "has no comparable figure"
    return f"The highest mean is {cell.mean:.{digits}f} %, in {name}; the paper {why}"


def _basis(table: Table, filled: _Named) -> str:
    seeds = {cell.n for _, cell in filled}
    number = counted(seeds)
    mean = "one seed" if number == "1" else f"mean of {number} seeds"
    return f"{mean}, {table.scale} scale, {RULES[table.selection]}"


def _missing(everything: _Named) -> str:
    """Failures and gaps, which a mean of the rest would hide."""
    failed = sum(cell.failed for _, cell in everything)
    empty = sum(not cell.values for _, cell in everything)
    text = ""
    if failed:
        text += f" {failures(failed)} and {'is' if failed == 1 else 'are'} in no mean."
    if empty:
        text += f" {empty} of {len(everything)} cells {'has' if empty == 1 else 'have'} no result."
    return text
