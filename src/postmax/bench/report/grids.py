"""Tables as the page shows them: every text ready, so that the template decides nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass

from postmax.bench.report.figures import RULES, cells, counted, gap
from postmax.bench.table import Cell, Panel, Table
from postmax.bench.text import LEVEL, decimals, signed


@dataclass(frozen=True)
class CellView:
    """A cell in texts; empty ones are not shown."""

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
    """A panel with its rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[CellView, ...]], ...]


@dataclass(frozen=True)
class TableView:
    """A table under one selection rule."""

    selection: str
    rule: str
    oracle: bool
    caption: str
    panels: tuple[PanelView, ...]


def table_view(table: Table) -> TableView:
    """The table in texts."""
    digits = decimals(table)
    everything = [cell for _, cell in cells(table)]
    seeds = {cell.n for cell in everything if cell.values}
    return TableView(
        selection=table.selection,
        rule=RULES.get(table.selection, table.selection),
        oracle=table.selection == "oracle",
        caption=_caption(table, everything, seeds),
        panels=tuple(_panel_view(panel, digits, max(seeds, default=0)) for panel in table.panels),
    )


def _caption(table: Table, everything: list[Cell], seeds: set[int]) -> str:
    among = "its row" if table.compare == "columns" else "its column"
    number = counted(seeds) if seeds else "0"
    parts = [
        f"Test accuracy in %, {'one seed' if number == '1' else f'mean ± standard deviation of n = {number} seeds'}"
    ]
    if any(cell.paper is not None for cell in everything):
        parts.append("beneath it the paper's figure and our difference from it")
    if any(cell.best for cell in everything):
        parts.append(f"bold is the best of {among}")
    if any(_as_good(cell) for cell in everything):
        parts.append(f"≈ is not significantly worse than the best (paired test, Holm, p ≥ {LEVEL})")
    return "; ".join(parts) + "."


def _panel_view(panel: Panel, digits: int, seeds: int) -> PanelView:
    rows = []
    for row in panel.rows:
        line = (panel.cells.get((row, column)) for column in panel.columns)
        rows.append((row, tuple(CellView("") if cell is None else _cell_view(cell, digits, seeds) for cell in line)))
    return PanelView(panel.title, panel.columns, tuple(rows))


def _cell_view(cell: Cell, digits: int, seeds: int) -> CellView:
    step = gap(cell, digits)
    notes = []
    if cell.failed:
        notes.append(f"{cell.failed} failed")
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
