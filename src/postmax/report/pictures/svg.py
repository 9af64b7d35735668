"""Figures as small SVG texts that can be put into a page, with the same bytes every time."""

from __future__ import annotations

import html
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from postmax.report.pictures.canvas import IN_FILE_ONLY, INK, TITLE_HEIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Only tags are changed. The text between them may be names that the user chose.
_TAG = re.compile(r"<[^>]+>")
_POINTS = 72  # to the inch


@dataclass(frozen=True)
class Drawing:
    """The content of the `<svg>` element of a figure, and its size in points."""

    body: str
    width: float
    height: float


def drawing(figure: Figure, name: str) -> Drawing:
    """Return a figure as SVG. Every id inside begins with `name`, so that two pictures of a page share no id."""
    buffer = io.BytesIO()
    no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=no_metadata)
    # The layout is found by now. Finding it again for the PNG would take longer than drawing.
    figure.set_layout_engine("none")
    text = buffer.getvalue().decode()
    body = text[text.index("<defs>") : text.rindex("</svg>")]
    # The style sheet of a picture would change the whole page.
    body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)
    width, height = figure.get_size_inches() * _POINTS
    return Drawing(_TAG.sub(lambda tag: _lean(tag[0], name), body), float(width), float(height))


def _lean(tag: str, name: str) -> str:
    """Return a shorter tag: numbers with two decimals, finer than any screen, and the reader's own font."""
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag)
    tag = re.sub(r"\s*\n\s*", " ", tag)
    tag = re.sub(r"font: (?:(bold) )?([\d.]+px) [^;\"]+", r"font-weight: \1; font-size: \2; font-family: ?", tag)
    tag = re.sub(r"font-family: [^;\"]+", "font-family: system-ui, sans-serif", tag)
    return re.sub(r'\b(id="|href="#)', rf"\1{name}-", tag).replace("url(#", f"url(#{name}-")


def for_page(drawn: Drawing, name: str, title: str) -> str:
    """Return the `<svg>` element for the page: in the colour of the text around it, and without title and legend.

    Args:
        drawn: The figure.
        name: The name with which it was drawn.
        title: What the picture shows, for readers who cannot see it.
    """
    body = _TAG.sub(lambda tag: tag[0].replace(INK, "currentColor"), _without(drawn.body, f'id="{name}-{IN_FILE_ONLY}'))
    top = TITLE_HEIGHT * _POINTS
    box = f"0 {top:g} {drawn.width:g} {drawn.height - top:g}"
    label = f'<title id="{name}-title">{html.escape(title)}</title>'
    return f'<svg viewBox="{box}" role="img" aria-labelledby="{name}-title">{label}{body}</svg>'


def _without(body: str, mark: str) -> str:
    """Return the SVG without the groups whose tag holds the mark."""
    kept, depth, start = [], 0, 0
    for tag in re.finditer(r"<g\b[^>]*>|</g>", body):
        opens = tag[0] != "</g>"
        if not depth and mark in tag[0]:
            kept.append(body[start : tag.start()])
            depth = 1
        elif depth:
            depth += 1 if opens else -1
            start = tag.end()
    return "".join([*kept, body[start:]])
