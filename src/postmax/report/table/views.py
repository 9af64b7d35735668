"""Tables as the page shows them: all texts are made here, so that the template only places them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from postmax.report.numbers import from_to, signed
from postmax.report.selection_words import SELECTION_IN_WORDS
from postmax.report.table.cells import gap, named_cells
from postmax.report.table.text import LEVEL, decimals, failures, name_of_test, not_competing
from postmax.tables.table import Cell, Panel, Table


@dataclass(frozen=True)
class CellView:
    """The texts of a cell; empty ones are not shown."""

    mean: str = "–"
    std: str = ""
    paper: str = ""
    difference: str = ""
    direction: str = ""  # "up", "down" or "same"
    best: bool = False
    as_good: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PanelView:
    """The texts of a panel, row by row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[CellView, ...]], ...]


@dataclass(frozen=True)
class TableView:
    """The texts of a table under one selection rule."""

    heading: str
    caption: str
    panels: tuple[PanelView, ...]


def table_view(table: Table) -> TableView:
    """Return the texts of a table."""
    digits, rule = decimals(table), SELECTION_IN_WORDS[table.selection]
    everything = [cell for _, cell in named_cells(table)]
    seeds = {cell.n for cell in everything if cell.values}
    return TableView(
        heading=f"Selection: {rule}" if table.selection != "oracle" else f"{rule[0].upper()}{rule[1:]}",
        caption=_caption(table, everything, seeds),
        panels=tuple(_panel_view(table, panel, digits, max(seeds, default=0)) for panel in table.panels),
    )


def _caption(table: Table, everything: list[Cell], seeds: set[int]) -> str:
    number = from_to(seeds) if seeds else "0"
    parts = [
        f"Test accuracy in %, {'one seed' if number == '1' else f'mean ± standard deviation of n = {number} seeds'}"
    ]
    if any(cell.paper is not None for cell in everything):
        parts.append(
            f"below it the value that the paper reports{' and the difference from it' if table.comparable else ''}"
        )
    if any(cell.best for cell in everything):
        parts.append(f"bold is the best of its {table.along}")
    if any(cell.p_value is not None for cell in everything):
        parts.append(f"≈ is not significantly worse than the best ({name_of_test(everything)}, p ≥ {LEVEL})")
    if outsiders := not_competing(everything):
        parts.append(outsiders)
    warning = (
        "This selection uses the true test labels, so it is too good for every method. It is shown for comparison with "
        "work that reports it. "
    )
    return (warning if table.selection == "oracle" else "") + "; ".join(parts) + "."


def _panel_view(table: Table, panel: Panel, digits: int, seeds: int) -> PanelView:
    rows = []
    for row in panel.rows:
        line = (panel.cells.get((row, column)) for column in panel.columns)
        views = (CellView("") if cell is None else _cell_view(table, cell, digits, seeds) for cell in line)
        rows.append((row, tuple(views)))
    return PanelView(panel.title, panel.columns, tuple(rows))


def _cell_view(table: Table, cell: Cell, digits: int, seeds: int) -> CellView:
    step = gap(table, cell, digits)
    notes = []
    if cell.failed:
        notes.append(failures(cell.failed))
    if cell.values and cell.n != seeds:
        notes.append(f"n = {cell.n}")
    if cell.missing:
        notes.append(f"{cell.missing} to run")
    return CellView(
        mean=f"{cell.mean:.{digits}f}" if cell.values else "–",
        std="" if math.isnan(cell.std) else f"± {cell.std:.{digits}f}",
        paper="" if cell.paper is None else f"{cell.paper:.{digits}f}",
        difference="" if step is None else signed(step, digits),
        direction="" if step is None else "same" if step == 0 else "up" if step > 0 else "down",
        best=cell.best,
        as_good=_as_good(cell),
        notes=tuple(notes),
    )


def _as_good(cell: Cell) -> bool:
    return not cell.best and cell.p_value is not None and cell.p_value >= LEVEL
