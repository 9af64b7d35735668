"""A table in the terminal. It fits into narrow windows too."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as Grid
from rich.text import Text

from postmax.report.numbers import signed
from postmax.report.table.text import caption, decimals, ours, theirs, usual_n
from postmax.tables.table import Cell, Panel, Table


def print_table(table: Table, console: Console | None = None) -> None:
    """Print a table, one grid for each panel. If the columns do not fit into the window, each cell has its own line."""
    if console is None:
        # A file has no width, so it gets long lines.
        console = Console(width=None if Console().is_terminal else 200, highlight=False)
    console.print(Text(table.title, style="bold"), Text(f"(scale: {table.scale})", style="dim"))
    if table.note:
        console.print(Text(table.note, style="dim"))
    captions = [caption(table, panel) for panel in table.panels]
    for panel, text, following in zip(table.panels, captions, [*captions[1:], None], strict=True):
        console.print(render_panel(table, panel, console))
        if text != following:
            console.print(Text(text, style="dim"))


def render_panel(table: Table, panel: Panel, console: Console) -> Grid:
    """Return what `print_table` prints for a panel."""
    digits = decimals(table)
    grid = _wide(table, panel, digits)
    boundless = console.options.update(width=10_000)
    if Measurement.get(console, boundless, grid).maximum > console.width:
        grid = _long(table, panel, digits)
    grid.title = Text(panel.title, style="bold")
    return grid


def _grid() -> Grid:
    return Grid(box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)


def _wide(table: Table, panel: Panel, digits: int) -> Grid:
    grid = _grid()
    grid.add_column("", no_wrap=True)
    for column in panel.columns:
        grid.add_column(Text(column), justify="right", no_wrap=True)
    for row in panel.rows:
        cells = [panel.cells.get((row, column)) for column in panel.columns]
        grid.add_row(Text(row), *(_ours(cell, digits, panel) for cell in cells))
        if any(cell is not None and cell.paper is not None for cell in cells):
            grid.add_row(Text("  paper", style="dim"), *(_theirs(table, cell, digits) for cell in cells))
    return grid


def _long(table: Table, panel: Panel, digits: int) -> Grid:
    grid = _grid()
    grid.add_column("")
    for name in ("ours", "paper", "diff."):
        grid.add_column(name, justify="right", no_wrap=True)
    for row in panel.rows:
        grid.add_row(Text(row, style="bold"))
        for column in panel.columns:
            cell = panel.cells.get((row, column))
            if cell is not None:
                paper = "" if cell.paper is None else f"{cell.paper:.{digits}f}"
                apart = table.difference(cell)
                difference = "" if apart is None else signed(apart, digits)
                grid.add_row(Text(column), _ours(cell, digits, panel), Text(paper), Text(difference))
    return grid


def _ours(cell: Cell | None, digits: int, panel: Panel) -> Text:
    if cell is None:
        return Text("")
    return Text(ours(cell, digits, usual_n(panel)), style="bold" if cell.best else "red" if cell.failed else "")


def _theirs(table: Table, cell: Cell | None, digits: int) -> Text:
    return Text("" if cell is None else theirs(table, cell, digits), style="dim")
