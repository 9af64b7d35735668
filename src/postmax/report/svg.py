"""Figures as SVG text: lean, the same bytes every time, and fit to stand inside another document."""

from __future__ import annotations

import html
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from postmax.report.canvas import IN_FILE_ONLY, INK, TITLE_HEIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TAG = re.compile(r"<[^>]+>")  # text between tags is left alone: it may be anybody's
_POINTS = 72  # to the inch


@dataclass(frozen=True)
class Drawing:
    """What is inside the `<svg>` of a figure, and its size in points."""

    body: str
    width: float
    height: float


def drawing(figure: Figure, name: str) -> Drawing:
    """The figure as SVG; every id inside begins with `name`, since two pictures of one page must not share any."""
    buffer = io.BytesIO()
    nobody = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nobody)
    text = buffer.getvalue().decode()
    body = text[text.index("<defs>") : text.rindex("</svg>")]
    # The style sheet of a picture would hold for the whole page.
    body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)
    width, height = figure.get_size_inches() * _POINTS
    return Drawing(_TAG.sub(lambda tag: _lean(tag[0], name), body), float(width), float(height))


def _lean(tag: str, name: str) -> str:
    """A hundredth of a point is finer than any screen, and the reader's own font is there for certain."""
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag)
    tag = re.sub(r"\s*\n\s*", " ", tag)
    tag = re.sub(r"font: (?:(bold) )?([\d.]+px) [^;\"]+", r"font-weight: \1; font-size: \2; font-family: ?", tag)
    tag = re.sub(r"font-family: [^;\"]+", "font-family: system-ui, sans-serif", tag)
    return re.sub(r'\b(id="|href="#)', rf"\1{name}-", tag).replace("url(#", f"url(#{name}-")


def for_page(drawn: Drawing, name: str, title: str) -> str:
    """The `<svg>` element for the page: in the colour of the text around it, without what that text says.

    Args:
        drawn: What to show.
        name: As it was drawn with.
        title: What the picture shows, for those who cannot see it.
    """
    body = _TAG.sub(lambda tag: tag[0].replace(INK, "currentColor"), _without(drawn.body, f'id="{name}-{IN_FILE_ONLY}'))
    top = TITLE_HEIGHT * _POINTS
    box = f"0 {top:g} {drawn.width:g} {drawn.height - top:g}"
    label = f'<title id="{name}-title">{html.escape(title)}</title>'
    return f'<svg viewBox="{box}" role="img" aria-labelledby="{name}-title">{label}{body}</svg>'


def _without(body: str, mark: str) -> str:
    """Cut out the groups whose tag holds the mark, with all that is inside."""
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
