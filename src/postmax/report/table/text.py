"""A table as text: Markdown for documents, and plain values (JSON) for programs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from typing import Any

from postmax.report.numbers import mean_and_std, signed
from postmax.report.selection_words import SELECTION_IN_WORDS
from postmax.tables.table import Cell, Panel, Table

# A difference to the best with a p-value below this is called significant.
LEVEL = 0.05


def decimals(table: Table) -> int:
    """Return how many decimals are printed: as many as the paper prints, at least one; two without reported values."""
    values = [cell.paper for panel in table.panels for cell in panel.cells.values() if cell.paper is not None]
    return 1 if values and all(value == round(value, 1) for value in values) else 2


def ours(cell: Cell, digits: int, usual_n: int) -> str:
    """Return mean ± std of a cell, a star if it is significantly below the best, and remarks about its seeds.

    Example:
        >>> ours(Cell(values=(95.0, 96.0), failed=1), 1, 3)
        '95.5 ± 0.7 (n = 2, 1 seed failed)'
    """
    if not cell.n:
        return failures(cell.failed) if cell.failed else "–"
    text = mean_and_std(cell.values, digits)
    if cell.p_value is not None and cell.p_value < LEVEL:
        text += "*"
    remarks = [f"n = {cell.n}"] if cell.n != usual_n else []
    remarks += [failures(cell.failed)] if cell.failed else []
    return f"{text} ({', '.join(remarks)})" if remarks else text


def failures(seeds: int) -> str:
    """Return how many seeds failed, in words."""
    return "1 seed failed" if seeds == 1 else f"{seeds} seeds failed"


def theirs(table: Table, cell: Cell, digits: int) -> str:
    """Return the reported value and how far the mean is from it; empty if there is none."""
    if cell.paper is None:
        return ""
    apart = table.difference(cell)
    return f"{cell.paper:.{digits}f}" + ("" if apart is None else f" ({signed(apart, digits)})")


def usual_n(panel: Panel) -> int:
    """Return the largest number of seeds of a cell. Cells with fewer seeds say so."""
    return max((cell.n for cell in panel.cells.values()), default=0)


def caption(table: Table, panel: Panel) -> str:
    """Return a sentence that says how to read a panel."""
    cells = panel.cells.values()
    seeds = usual_n(panel)
    number = "one seed" if seeds == 1 else f"mean ± std of n = {seeds} seeds"
    text = f"Test accuracy in per cent, {number} ({SELECTION_IN_WORDS[table.selection]})."
    if any(cell.best for cell in cells):
        text += f" Bold: the best of its {table.along}, where cells compete."
    if any(cell.p_value is not None for cell in cells):
        text += f" *: below it with p < {LEVEL} ({name_of_test(cells)})."
    if outsiders := not_competing(cells):
        text += f" {outsiders[0].upper()}{outsiders[1:]}."
    missing = sum(cell.missing for cell in cells)
    return text + (f" Still to run: {missing} values." if missing else "")


def name_of_test(cells: Iterable[Cell]) -> str:
    """Return the name of the test that the p-values come from."""
    overlapping = any(cell.overlap for cell in cells)
    return f"paired t-test{' corrected for overlapping splits (Nadeau–Bengio)' if overlapping else ''}, Holm"


def not_competing(cells: Collection[Cell]) -> str:
    """Return why the highest mean may not be bold; empty if all cells compete."""
    if any(cell.best for cell in cells) and any(cell.values and not cell.complete for cell in cells):
        return "cells with failed or missing seeds do not compete"
    return ""


def to_markdown(table: Table) -> str:
    """Return the table in Markdown: the mean of each cell, and below it the reported value with the difference."""
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
    """Return the table as plain values for JSON. Values that are not finite become null."""
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


def from_json(content: Mapping[str, Any]) -> Table:
    """Return the table that `to_json` wrote. What an older version did not write yet has its default."""
    panels = tuple(
        Panel(
            panel["title"],
            tuple(panel["rows"]),
            tuple(panel["columns"]),
            {(one["row"], one["column"]): _cell(one) for one in panel["cells"]},
        )
        for panel in content["panels"]
    )
    kept = ("name", "title", "scale", "selection", "compare", "note", "comparable", "tuned")
    return Table(panels=panels, **{key: content[key] for key in kept if key in content})


def _cell(plain: Mapping[str, Any]) -> Cell:
    found: dict[str, Any] = {field.name: plain[field.name] for field in fields(Cell) if field.name in plain}
    found |= {name: tuple(value) for name, value in found.items() if isinstance(value, list)}
    return Cell(**found)


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
