"""The files beside a page: its pictures side by side on one white sheet, as SVG and as PNG."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from postmax.extras import need
from postmax.files import atomic_write
from postmax.report.pictures.canvas import new_figure, short
from postmax.report.pictures.svg import Drawing, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 120
_OPEN = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
    'width="{0:g}pt" height="{1:g}pt" viewBox="0 0 {0:g} {1:g}">'
    "<style>*{{stroke-linejoin: round; stroke-linecap: butt}}</style>"
    '<rect width="100%" height="100%" fill="#ffffff"/>\n'
)


def save_sheet(
    path: Path, figures: Sequence[Figure], drawings: Sequence[Drawing], columns: int, legend: Mapping[str, str]
) -> None:
    """Write path.svg and path.png.

    Args:
        path: The path of the files, without the ending.
        figures: The figures on the sheet.
        drawings: The same figures, already drawn as SVG.
        columns: How many figures are side by side.
        legend: A colour for each text; may be empty.
    """
    figures, drawings = list(figures), list(drawings)
    lines = [list(range(start, min(start + columns, len(figures)))) for start in range(0, len(figures), columns)]
    if legend:
        key = _legend(legend, sum(drawings[i].width for i in lines[0]))
        lines.append([len(figures)])
        figures.append(key)
        drawings.append(drawing(key, "legend"))
    with atomic_write(path.with_suffix(".svg")) as file:
        file.write(_svg(drawings, lines).encode())
    with atomic_write(path.with_suffix(".png")) as file:
        image = _pixels([_raster(figure) for figure in figures], lines)
        need("PIL.Image", "plot").fromarray(image).save(file, format="png")


def _svg(drawings: Sequence[Drawing], lines: Sequence[Sequence[int]]) -> str:
    tops = [0.0, *accumulate(max(drawings[i].height for i in line) for line in lines)]
    width = max(sum(drawings[i].width for i in line) for line in lines)
    parts = [_OPEN.format(width, tops[-1])]
    for line, top in zip(lines, tops, strict=False):
        left = 0.0
        for one in (drawings[i] for i in line):
            parts.append(
                f'<svg x="{left:g}" y="{top:g}" width="{one.width:g}" height="{one.height:g}">{one.body}</svg>\n'
            )
            left += one.width
    return "".join([*parts, "</svg>\n"])


def _raster(figure: Figure) -> npt.NDArray[np.uint8]:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="rgba", dpi=_DPI, facecolor="white")
    width, height = (int(inches * _DPI) for inches in figure.get_size_inches())
    return np.frombuffer(buffer.getvalue(), np.uint8).reshape(height, width, 4)


def _pixels(images: Sequence[npt.NDArray[np.uint8]], lines: Sequence[Sequence[int]]) -> npt.NDArray[np.uint8]:
    tops = [0, *accumulate(max(images[i].shape[0] for i in line) for line in lines)]
    sheet = np.full((tops[-1], max(sum(images[i].shape[1] for i in line) for line in lines), 4), 255, np.uint8)
    for line, top in zip(lines, tops, strict=False):
        left = 0
        for image in (images[i] for i in line):
            height, width, _ = image.shape
            sheet[top : top + height, left : left + width] = image
            left += width
    return np.ascontiguousarray(sheet[:, :, :3])


def _legend(legend: Mapping[str, str], points: float) -> Figure:
    line = need("matplotlib.lines", "plot").Line2D
    handles = [line([], [], color=colour, marker="o", label=short(text)) for text, colour in legend.items()]
    columns = max(1, min(len(handles), int(points / 130)))
    figure = new_figure(0.25 * -(-len(handles) // columns), "", width=points / 72)
    figure.legend(handles=handles, loc="center", ncols=columns)
    return figure
