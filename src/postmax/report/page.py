"""The page itself: one file that needs no other, no network and no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from postmax.duration import in_words
from postmax.errors import DataError, InputError
from postmax.extras import need
from postmax.files import atomic_write
from postmax.report.answer import answer
from postmax.report.content import ReportContent, Run
from postmax.report.grids import table_view
from postmax.report.pictures import draw
from postmax.report.rules import ordered
from postmax.report.tuned_text import HEADING, in_short
from postmax.tables.table import Table


@dataclass(frozen=True)
class NoiseView:
    """The noise of one seed and how many runs saw exactly these labels."""

    seed: int
    rate: str
    rows: int
    sha256: str
    runs: int


def write_report(content: ReportContent, folder: Path) -> Path:
    """Write report.html into a folder, and each plot beside it as SVG and PNG.

    The same content gives the same bytes.

    Args:
        content: What to say.
        folder: Where to; made if it is not there.

    Returns:
        The path of the page.

    Raises:
        InputError: If there is no table.
        DataError: If the folder cannot be written.
    """
    if not content.tables:
        raise InputError("a report needs at least one table.")
    jinja = need("jinja2", "report")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder} could not be made: {error.strerror or error}.") from error
    tables = ordered(content.tables, content.headline)
    drawn = tables[0] if tables[0].comparable else _without_figures(tables[0])
    files = resources.files(__package__)
    environment = jinja.Environment(
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    text = environment.from_string(files.joinpath("page.html.jinja").read_text("utf-8")).render(
        content=content,
        css=files.joinpath("page.css").read_text("utf-8"),
        answer=answer(tables[0]),
        scale=tables[0].scale,
        note=tables[0].note,
        tables=[table_view(table) for table in tables],
        pictures=draw(content, drawn, folder),
        papers=any(cell.paper is not None for panel in drawn.panels for cell in panel.cells.values()),
        noise=_noise(content.runs),
        tuned_heading=HEADING,
        tuned=[(row, in_short(settings)) for row, settings in tables[0].tuned.items()],
        duration=in_words,
        seeds=_ranges(content.seeds),
    )
    path = folder / "report.html"
    with atomic_write(path) as file:
        # A name may hold half of a surrogate pair, which no file can.
        file.write(text.encode("utf-8", errors="replace"))
    return path


def _without_figures(table: Table) -> Table:
    """Figures that cannot be compared with ours would only make the picture too wide to see anything in it."""
    panels = (
        replace(panel, cells={key: replace(cell, paper=None) for key, cell in panel.cells.items()})
        for panel in table.panels
    )
    return replace(table, panels=tuple(panels))


def _noise(runs: Sequence[Run]) -> list[NoiseView]:
    """Each set of labels once: methods are comparable because they share it."""
    found: dict[tuple[str, int], NoiseView] = {}
    for run in runs:
        for seed, record in run.noise.items():
            key = (record["sha256"], seed)
            before = found[key].runs if key in found else 0
            rate = "not known" if record["rate"] is None else f"{record['rate']:.1%}"
            found[key] = NoiseView(seed, rate, record["rows"], record["sha256"], before + 1)
    return list(found.values())


def _ranges(numbers: Sequence[int]) -> str:
    """0–19 instead of twenty numbers."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}–{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
