"""A table as text: Markdown for documents, plain values for programs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

from postmax.report.rules import RULES
from postmax.tables.table import Cell, Panel, Table

# Below this, a difference to the best is called significant.
LEVEL = 0.05


def decimals(table: Table) -> int:
    """As many as the paper has, but one at least; two without the paper."""
    figures = [cell.paper for panel in table.panels for cell in panel.cells.values() if cell.paper is not None]
    return 1 if figures and all(figure == round(figure, 1) for figure in figures) else 2


def ours(cell: Cell, digits: int, usual_n: int) -> str:
    """Our figure: mean ± std, a star if it is significantly below the best, and what is wrong with it.

    Example:
        >>> ours(Cell(values=(95.0, 96.0), failed=1), 1, 3)
        '95.5 ± 0.7 (n = 2, 1 seed failed)'
    """
    if not cell.n:
        return failures(cell.failed) if cell.failed else "–"
    text = f"{cell.mean:.{digits}f}"
    if cell.n > 1:
        text += f" ± {cell.std:.{digits}f}"
    if cell.p_value is not None and cell.p_value < LEVEL:
        text += "*"
    remarks = [f"n = {cell.n}"] if cell.n != usual_n else []
    remarks += [failures(cell.failed)] if cell.failed else []
    return f"{text} ({', '.join(remarks)})" if remarks else text


def failures(seeds: int) -> str:
    """How many seeds failed."""
    return "1 seed failed" if seeds == 1 else f"{seeds} seeds failed"


def theirs(table: Table, cell: Cell, digits: int) -> str:
    """The paper's figure and how far ours is from it; empty if there is none."""
    if cell.paper is None:
        return ""
    apart = table.difference(cell)
    return f"{cell.paper:.{digits}f}" + ("" if apart is None else f" ({signed(apart, digits)})")


def signed(value: float, digits: int) -> str:
    """With a sign as typographers have it.

    Example:
        >>> signed(-0.25, 2), signed(0.001, 1)
        ('−0.25', '±0.0')
    """
    text = f"{value:+.{digits}f}"
    if not float(text):
        return f"±{text[1:]}"
    return text.replace("-", "−")


def usual_n(panel: Panel) -> int:
    """The number of seeds that most cells are meant to have."""
    return max((cell.n for cell in panel.cells.values()), default=0)


def caption(table: Table, panel: Panel) -> str:
    """How to read a panel."""
    cells = panel.cells.values()
    seeds = usual_n(panel)
    number = "one seed" if seeds == 1 else f"mean ± std of n = {seeds} seeds"
    text = f"Test accuracy in per cent, {number} ({RULES[table.selection]})."
    if any(cell.best for cell in cells):
        text += f" Bold: the best of its {table.along}, where cells compete."
    if any(cell.p_value is not None for cell in cells):
        text += f" *: below it with p < {LEVEL} ({name_of_test(cells)})."
    if outsiders := not_competing(cells):
        text += f" {outsiders[0].upper()}{outsiders[1:]}."
    missing = sum(cell.missing for cell in cells)
    return text + (f" Still to run: {missing} values." if missing else "")


def name_of_test(cells: Iterable[Cell]) -> str:
    """The test that the p-values come from."""
    overlapping = any(cell.overlap for cell in cells)
    return f"paired t-test{' corrected for overlapping splits (Nadeau–Bengio)' if overlapping else ''}, Holm"


def not_competing(cells: Collection[Cell]) -> str:
    """Why a mean that looks best may not be bold; empty if that cannot be."""
    if any(cell.best for cell in cells) and any(cell.values and not cell.complete for cell in cells):
        return "cells with failed or missing seeds do not compete"
    return ""


def to_markdown(table: Table) -> str:
    """The table in Markdown: ours, and below it the paper's figure with the difference."""
    digits = decimals(table)
    lines = [f"# {table.title}", "", f"Scale: {table.scale}. {table.note}".rstrip(), ""]
    for panel in table.panels:
        lines += [f"## {panel.title}", "", _line("", *panel.columns), _line("---", *("---:" for _ in panel.columns))]
        for row in panel.rows:
            cells = (_markdown_cell(table, panel, panel.cells.get((row, column)), digits) for column in panel.columns)
            lines.append(_line(row, *cells))
        lines += ["", caption(table, panel), ""]
    return "\n".join(lines)


def _markdown_cell(table: Table, panel: Panel, cell: Cell | None, digits: int) -> str:
    if cell is None:
        return ""
    text = ours(cell, digits, usual_n(panel)).replace("*", r"\*")
    paper = theirs(table, cell, digits)
    return (f"**{text}**" if cell.best else text) + (f"<br>paper {paper}" if paper else "")


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def to_json(table: Table) -> dict[str, Any]:
    """The table as plain values that JSON can hold: what is not a number is null."""
    return {
        "name": table.name,
        "title": table.title,
        "scale": table.scale,
        "note": table.note,
        "selection": table.selection,
        "comparable": table.comparable,
        "compare": table.compare,
        "tuned": {row: dict(settings) for row, settings in table.tuned.items()},
        "panels": [
            {
                "title": panel.title,
                "rows": list(panel.rows),
                "columns": list(panel.columns),
                "cells": [
                    {"row": row, "column": column, **_plain(table, panel.cells[row, column])}
                    for row in panel.rows
                    for column in panel.columns
                    if (row, column) in panel.cells
                ],
            }
            for panel in table.panels
        ],
    }


def _plain(table: Table, cell: Cell) -> dict[str, Any]:
    return {
        "mean": _or_none(cell.mean),
        "std": _or_none(cell.std),
        "n": cell.n,
        "values": list(cell.values),
        "seeds": list(cell.seeds),
        "failed": cell.failed,
        "missing": cell.missing,
        "paper": cell.paper,
        "difference": table.difference(cell),
        "best": cell.best,
        "p_value": cell.p_value,
        "overlap": cell.overlap,
        "run_ids": list(cell.run_ids),
    }


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
