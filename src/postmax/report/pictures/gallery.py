"""Draw the plots that both kinds of pages have: learning curves, transition matrices, calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from postmax.report.content import Group, NoiseMatrix
from postmax.report.pictures import curves, reliability, traces, transition
from postmax.report.pictures.canvas import short
from postmax.report.pictures.sheet import save_sheet
from postmax.report.pictures.svg import Drawing, drawing, for_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A legend has a colour for each text.
Legend = tuple[tuple[str, str], ...]
Colours = Mapping[str, str]


@dataclass(frozen=True)
class Picture:
    """A small plot on the page.

    Attributes:
        title: Its title; may be empty.
        svg: The plot as an `<svg>` element.
        panel: A heading that it shares with the pictures beside it.
        legend: The legend below it.
        wide: Whether it takes the whole width of the page.
    """

    title: str
    svg: str
    panel: str = ""
    legend: Legend = ()
    wide: bool = False


@dataclass
class Pile:
    """Figures of one kind that are shown on the page one by one, and saved together on one sheet."""

    figures: list[Figure] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)

    def add(self, figure: Figure, kind: str, words: str) -> str:
        """Draw a figure and return what the page shows of it.

        Args:
            figure: The figure.
            kind: The beginning of its ids on the page.
            words: A description for readers who cannot see the picture.
        """
        name = f"{kind}-{len(self.figures)}"
        self.figures.append(figure)
        self.drawings.append(drawing(figure, name))
        return for_page(self.drawings[-1], name, words)

    def save(self, path: Path, columns: int, legend: Colours) -> None:
        """Write the sheet as SVG and PNG, if there are figures."""
        if self.figures:
            save_sheet(path, self.figures, self.drawings, columns, legend)


def curve_pictures(groups: Sequence[Group], colours: Colours, folder: Path) -> tuple[list[Picture], list[Picture]]:
    """Draw the learning curves.

    Returns:
        The main curves (test accuracy, wrong labels learnt), and further ones that explain them.
    """
    shown = [one for one in map(traces.trace, groups) if any(one.bands.values())]
    pairs = ((traces.TEST, traces.MEMORISED), (traces.RIGHT, traces.RECOVERED))
    kinds = [measures for pair in pairs if (measures := traces.measured(shown, pair))]
    pile = Pile()
    pictures: list[list[Picture]] = [[], []]
    for one in shown:
        for measures, some in zip(kinds, pictures, strict=False):
            svg = pile.add(curves.curves_figure(one, measures, colours), "curves", curves.in_words(one, measures))
            some.append(Picture(one.group.row, svg, one.group.panel))
    pile.save(folder / "learning-curves", 2 * len(kinds), colours if len(colours) > 1 else {})
    return pictures[0], pictures[1]


def transition_pictures(matrices: Sequence[NoiseMatrix], folder: Path) -> list[Picture]:
    """Draw transition matrices. Those with too many classes are left out."""
    pile = Pile()
    pictures = []
    for one in matrices:
        if len(one.classes) <= transition.MOST_CLASSES:
            svg = pile.add(transition.transition_figure(one), "noise", transition.in_words(one))
            pictures.append(Picture(one.title, svg, wide=len(one.classes) >= transition.WIDE_FROM))
    pile.save(folder / "transition", 3, {})
    return pictures


def reliability_pictures(groups: Sequence[Group], colours: Colours, folder: Path) -> list[Picture]:
    """Draw the reliability diagrams."""
    pile = Pile()
    pictures = []
    for group in groups:
        if series := reliability.drawn(group):
            svg = pile.add(reliability.reliability_figure(group, colours), "reliability", reliability.in_words(group))
            texts = [f"{short(one.label)}, error {reliability.mean_error(one):.1f} %" for one in series]
            legend = tuple(zip(texts, (colours[one.label] for one in series), strict=True))
            pictures.append(Picture(group.row, svg, group.panel, legend))
    pile.save(folder / "reliability", 4, {})
    return pictures
