"""Pictures of transition matrices, written to files. Matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from postmax.errors import InputError
from postmax.extras import need
from postmax.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FORMATS = ("png", "svg", "pdf")
_NUMBERS_UP_TO, _NAMES_UP_TO = 20, 60


def check_picture(path: str | Path) -> str:
    """Return the format of a picture by the ending of its name.

    Raises:
        InputError: If pictures are not written in this format, or matplotlib is missing.
    """
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in _FORMATS:
        raise InputError(f"{path}: pictures are written as {', '.join('.' + name for name in _FORMATS)}.")
    need("matplotlib", "plot")
    return kind


def heat_map(matrix: Tensor, classes: Sequence[str | int], path: str | Path, *, title: str = "") -> None:
    """Draw a transition matrix as PNG, SVG or PDF, by the name of the file.

    Small entries get a larger part of the colour scale, because the entries beside the diagonal are small.
    """
    kind = check_picture(path)
    # Without pyplot, which would look for a screen and keep every figure in memory.
    figure_class = need("matplotlib.figure", "plot").Figure
    side = min(14.0, max(4.0, 0.55 * min(len(matrix), 24) + 2))
    figure = figure_class(figsize=(side + 1, side), layout="constrained")
    draw_heat_map(figure.subplots(), matrix, classes, title=title)
    with atomic_write(path) as file:
        figure.savefig(file, format=kind, dpi=150, bbox_inches="tight")


def draw_heat_map(
    axes: Axes, matrix: Tensor, classes: Sequence[str | int], *, title: str = "", number_size: float = 8
) -> None:
    """Draw a transition matrix into existing axes, with a colour bar beside them.

    Up to sixty classes are named, and up to twenty have their numbers written into the cells.
    """
    norm = need("matplotlib.colors", "plot").PowerNorm(gamma=0.4, vmin=0, vmax=1)
    k = len(matrix)
    image = axes.imshow(matrix.numpy(), norm=norm, cmap="Blues", interpolation="nearest")
    ticks = [0, 0.01, 0.05, 0.2, 0.5, 1.0]
    axes.figure.colorbar(image, ax=axes, shrink=0.8, ticks=ticks, format=_percent)
    axes.set_xlabel("label")
    axes.set_ylabel("true class")
    axes.set_title(title, fontsize="medium", wrap=True, parse_math=False)
    if k <= _NAMES_UP_TO:
        names = [str(name) if len(str(name)) <= 20 else f"{str(name)[:19]}…" for name in classes]
        # Names are plain text, even if they contain dollar signs, which matplotlib would read as a formula.
        axes.set_xticks(range(k), names, rotation=90 if max(map(len, names)) > 3 else 0, parse_math=False)
        axes.set_yticks(range(k), names, parse_math=False)
    if k <= _NUMBERS_UP_TO:
        for i, row in enumerate(matrix.tolist()):
            for j, value in enumerate(row):
                if value >= 0.0005:
                    text = f"{100 * value:.1f}" if value < 0.0995 else f"{100 * value:.0f}"
                    colour = "white" if value > 0.42 else "black"
                    axes.text(j, i, text, ha="center", va="center", fontsize=number_size, color=colour)


def _percent(value: float, _: int) -> str:
    return f"{value:.0%}"
