"""The page of a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from postmax.errors import InputError
from postmax.report.noise_hashes import noise_hashes
from postmax.report.numbers import ranges
from postmax.report.page import make_folder, write_page
from postmax.report.selection_words import headline_first
from postmax.report.table.content import TableContent
from postmax.report.table.pictures import draw
from postmax.report.table.summary import summary
from postmax.report.table.tuned_text import HEADING
from postmax.report.table.views import table_view
from postmax.tables.table import Table
from postmax.train.settings import as_overrides


def write_table_page(content: TableContent, folder: Path) -> Path:
    """Write report.html into a folder, and each plot beside it as SVG and PNG.

    The same content gives the same bytes.

    Args:
        content: What the page says.
        folder: The folder to write to. It is made if it does not exist.

    Returns:
        The path of the page.

    Raises:
        InputError: If the content has no table.
        DataError: If the folder cannot be written.
    """
    if not content.tables:
        raise InputError("the page of a table needs at least one table.")
    make_folder(folder)
    tables = sorted(content.tables, key=lambda table: headline_first(table.selection, content.headline))
    drawn = tables[0] if tables[0].comparable else _without_reported_values(tables[0])
    return write_page(
        "table.html.jinja",
        folder,
        content=content,
        summary=summary(tables[0]),
        scale=tables[0].scale,
        note=tables[0].note,
        tables=[table_view(table) for table in tables],
        pictures=draw(content, drawn, folder),
        papers=any(cell.paper is not None for panel in drawn.panels for cell in panel.cells.values()),
        noise=noise_hashes(run.noise for run in content.runs),
        tuned_heading=HEADING,
        tuned=[(row, as_overrides(settings)) for row, settings in tables[0].tuned.items()],
        seeds=ranges(content.seeds),
    )


def _without_reported_values(table: Table) -> Table:
    """Return the table as it is drawn where reported values cannot be compared: they would stretch the axis."""
    panels = (
        replace(panel, cells={key: replace(cell, paper=None) for key, cell in panel.cells.items()})
        for panel in table.panels
    )
    return replace(table, panels=tuple(panels))
