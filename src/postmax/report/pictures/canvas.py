"""Empty figures in one style. They are legible on a light and on a dark page, and have the same bytes every time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from postmax.extras import need

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# The colour of text and axes. On the page it is replaced by the colour of the text around the picture.
INK = "#1c1e21"
# Each colour has a contrast of 3 or more with the light and with the dark page. The second eight are for wide tables.
PALETTE = (
    *("#d55e00", "#0072b2", "#009e73", "#b8609a", "#8c6d1f", "#7a68c4", "#b8474f", "#3f8f9f"),
    *("#4f6fcf", "#5f8a1f", "#a55bab", "#c0741a", "#4f6f7f", "#a04a1f", "#6a6a2f", "#d0508a"),
)
REFERENCE = "#808080"
# In inches. A phone shows a small plot at about its natural size, so that its text can be read.
SMALL_WIDTH = 4.6
TITLE_HEIGHT = 0.32
# The ids of titles and legends begin with this. The page says them in its own text, so only files show them.
IN_FILE_ONLY = "in-file-only"

_SETTINGS: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.size": 11.0,
    "text.color": INK,
    "text.parse_math": False,  # names of classes and rows are text, also with dollar signs
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#808080",
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "postmax",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Give everything that is drawn and saved inside the same style."""
    with need("matplotlib", "plot").rc_context(_SETTINGS), warnings.catch_warnings():
        # The font of the picture may lack letters of a name. The page shows them in the reader's own font.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield


def new_figure(height: float, title: str, *, width: float = SMALL_WIDTH, constrained: bool = False) -> Figure:
    """Return an empty figure of that many inches, and a strip for the title on top.

    It is made without pyplot, which would look for a screen and keep every figure in memory.
    """
    whole = height + TITLE_HEIGHT
    engine = need("matplotlib.layout_engine", "plot").ConstrainedLayoutEngine
    layout = engine(rect=(0, 0, 1, height / whole)) if constrained else None
    figure: Figure = need("matplotlib.figure", "plot").Figure(figsize=(width, whole), layout=layout)
    text = figure.text(0.02, 1 - 0.06 / whole, short(title, 48), va="top", weight="bold", gid=f"{IN_FILE_ONLY}-title")
    text.set_in_layout(False)
    return figure


def margins(
    figure: Figure,
    *,
    left: float,
    right: float,
    bottom: float,
    top: float,
    between: float = 0.0,
) -> None:
    """Set the space around the plots of a figure, and between them, in inches.

    Fixed margins are several times as fast as a layout that measures all labels, and the frames of plots side by side
    line up.
    """
    width, height = figure.get_size_inches()
    rows = len(figure.axes)
    top += TITLE_HEIGHT
    # Matplotlib takes the gap as a share of the height of one plot.
    tall = (height - bottom - top - between * (rows - 1)) / rows
    figure.subplots_adjust(left / width, bottom / height, 1 - right / width, 1 - top / height, hspace=between / tall)


def colours(labels: tuple[str, ...], references: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return a colour for each label. References are grey."""
    chosen: dict[str, str] = {}
    for label in labels:
        strong = sum(colour != REFERENCE for colour in chosen.values())
        chosen[label] = REFERENCE if label in references else PALETTE[strong % len(PALETTE)]
    return chosen


def per_cent(axis: Axis, most: int = 6) -> None:
    """Give an axis few round ticks with a percent sign."""
    axis.set_major_locator(need("matplotlib.ticker", "plot").MaxNLocator(nbins=most, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(lambda value, _: f"{value:g} %")


def short(text: object, limit: int = 32) -> str:
    """Return a name as it can be drawn: one line, only printable letters, not longer than the limit."""
    line = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in str(text))
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
