"""All plots of a report: small ones for the page, which a phone stacks, and whole sheets of them as files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from postmax.report import accuracy, curves, noise, reliability, traces
from postmax.report.canvas import colours, house_style, short
from postmax.report.content import Group, ReportContent
from postmax.report.sheet import save_sheet
from postmax.report.svg import Drawing, drawing, for_page
from postmax.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GROUPS = 16  # small plots of a kind; a page with more would be read by nobody
_SERIES = 8  # lines of a plot; there are no more colours to tell them apart
_MATRICES = 9

Legend = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Picture:
    """A small plot on the page; the legend has a colour for each text, the panel is a heading for several."""

    title: str
    svg: str
    panel: str = ""
    legend: Legend = ()
    wide: bool = False


@dataclass(frozen=True)
class Pictures:
    """What the page shows; `left_out` says what it does not."""

    key: Legend
    accuracy: list[Picture]
    curves: list[Picture]
    more_curves: list[Picture]
    noise: list[Picture]
    reliability: list[Picture]
    left_out: str = ""


@dataclass
class _Pile:
    """Figures of one kind on their way to a sheet."""

    figures: list[Figure] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)

    def add(self, figure: Figure, kind: str, words: str) -> str:
        """Draw a figure; gives what the page shows of it."""
        name = f"{kind}-{len(self.figures)}"
        self.figures.append(figure)
        self.drawings.append(drawing(figure, name))
        return for_page(self.drawings[-1], name, words)

    def save(self, path: Path, columns: int, legend: dict[str, str]) -> None:
        if self.figures:
            save_sheet(path, self.figures, self.drawings, columns, legend)


def draw(content: ReportContent, headline: Table, folder: Path) -> Pictures:
    """Write the files and give the pictures of the page."""
    groups = [Group(one.panel, one.row, one.series[:_SERIES]) for one in content.groups[:_GROUPS]]
    chosen = _colours(headline, groups)
    with house_style():
        first, more = _curves(groups, chosen, folder)
        return Pictures(
            key=tuple((short(label), colour) for label, colour in chosen.items()),
            accuracy=_accuracy(headline, chosen, folder),
            curves=first,
            more_curves=more,
            noise=_noise(content, folder),
            reliability=_reliability(groups, chosen, folder),
            left_out=_left_out(content),
        )


def _colours(headline: Table, groups: list[Group]) -> dict[str, str]:
    labels = [column for panel in headline.panels for column in panel.columns]
    labels += [series.label for group in groups for series in group.series]
    references = frozenset(series.label for group in groups for series in group.series if series.reference)
    return colours(tuple(dict.fromkeys(labels)), references)


def _accuracy(headline: Table, chosen: dict[str, str], folder: Path) -> list[Picture]:
    pile = _Pile()
    pictures = []
    for panel in headline.panels:
        if any(cell.values for cell in panel.cells.values()):
            figure = accuracy.accuracy_figure(panel, chosen)
            pictures.append(Picture(panel.title, pile.add(figure, "accuracy", accuracy.in_words(panel))))
    pile.save(folder / "accuracy", 2, chosen)
    return pictures


def _curves(groups: list[Group], chosen: dict[str, str], folder: Path) -> tuple[list[Picture], list[Picture]]:
    """What decides (test accuracy, memorisation), and what explains it."""
    shown = [one for one in map(traces.trace, groups) if any(one.bands.values())]
    pairs = ((traces.TEST, traces.MEMORISED), (traces.RIGHT, traces.RECOVERED))
    kinds = [measures for pair in pairs if (measures := traces.measured(shown, pair))]
    pile = _Pile()
    pictures: list[list[Picture]] = [[], []]
    for one in shown:
        for measures, some in zip(kinds, pictures, strict=False):
            svg = pile.add(curves.curves_figure(one, measures, chosen), "curves", curves.in_words(one, measures))
            some.append(Picture(one.group.row, svg, one.group.panel))
    pile.save(folder / "learning-curves", 2 * len(kinds), chosen)
    return pictures[0], pictures[1]


def _noise(content: ReportContent, folder: Path) -> list[Picture]:
    pile = _Pile()
    pictures = []
    for one in [one for one in content.matrices if len(one.classes) <= noise.MOST_CLASSES][:_MATRICES]:
        svg = pile.add(noise.noise_figure(one), "noise", noise.in_words(one))
        pictures.append(Picture(one.title, svg, wide=len(one.classes) >= noise.WIDE_FROM))
    pile.save(folder / "transition", 3, {})
    return pictures


def _reliability(groups: list[Group], chosen: dict[str, str], folder: Path) -> list[Picture]:
    pile = _Pile()
    pictures = []
    for group in groups:
        if series := reliability.drawn(group):
            svg = pile.add(reliability.reliability_figure(group, chosen), "reliability", reliability.in_words(group))
            texts = [f"{short(one.label)}, error {reliability.mean_error(one):.1f} %" for one in series]
            legend = tuple(zip(texts, (chosen[one.label] for one in series), strict=True))
            pictures.append(Picture(group.row, svg, group.panel, legend))
    pile.save(folder / "reliability", 4, {})
    return pictures


def _left_out(content: ReportContent) -> str:
    """What does not fit is said, not hidden."""
    parts = []
    if len(content.groups) > _GROUPS:
        parts.append(f"{len(content.groups) - _GROUPS} more rows")
    if any(len(group.series) > _SERIES for group in content.groups):
        parts.append(f"columns after the first {_SERIES}")
    if len(content.matrices) > _MATRICES or any(len(one.classes) > noise.MOST_CLASSES for one in content.matrices):
        parts.append(f"matrices after the first {_MATRICES} or of more than {noise.MOST_CLASSES} classes")
    return f"Not drawn: {', '.join(parts)}." if parts else ""
