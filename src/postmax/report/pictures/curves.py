"""Learning curves: the test accuracy, and how many of the wrong labels the network has learnt, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from postmax.extras import need
from postmax.report.pictures.canvas import margins, new_figure, per_cent, short
from postmax.report.pictures.traces import NAMES, Band, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_curves(axes: Axes, bands: dict[str, Band], colours: Mapping[str, str]) -> None:
    """Draw one measure of one group: a line for the mean, a band for the standard deviation."""
    drawn: list[Band] = []
    for label, band in bands.items():
        # Two readings of the same run have the same curve. The second line is dashed, so that both can be seen.
        dashes = (0, (3, 3)) if band in drawn else "solid"
        drawn.append(band)
        low = [mean - std for mean, std in zip(band.mean, band.std, strict=True)]
        high = [min(100.0, mean + std) for mean, std in zip(band.mean, band.std, strict=True)]
        axes.fill_between(band.epochs, low, high, color=colours[label], alpha=0.1, linewidth=0)
        axes.plot(band.epochs, band.mean, color=colours[label], linewidth=1.6, linestyle=dashes)
    _limits(axes, drawn)
    per_cent(axes.yaxis)


def _limits(axes: Axes, drawn: Iterable[Band]) -> None:
    """Set the limits by the later epochs. The first ones would make later differences too small to see."""
    late = [pair for band in drawn for pair in list(zip(band.mean, band.std, strict=True))[len(band.mean) // 5 :]]
    if late:
        bottom = max(0.0, min(mean - std for mean, std in late))
        top = min(100.0, max(mean + std for mean, std in late))
        margin = max(0.5, 0.08 * (top - bottom))
        axes.set_ylim(max(-1.0, bottom - margin), min(101.0, top + margin))


def curves_figure(trace: Trace, measures: Sequence[str], colours: Mapping[str, str]) -> Figure:
    """Return a figure with the measures of one group, one above the other."""
    figure = new_figure(2.0 * len(measures) + 0.3, trace.group.title)
    grid = figure.subplots(len(measures), 1, sharex=True, squeeze=False)[:, 0]
    margins(figure, left=0.62, right=0.08, bottom=0.5, top=0.28, between=0.38)
    for axes, measure in zip(grid, measures, strict=True):
        draw_curves(axes, trace.bands[measure], colours)
        axes.set_title(NAMES[measure], fontsize=11, loc="left")
    grid[-1].xaxis.set_major_locator(need("matplotlib.ticker", "plot").MaxNLocator(nbins=6, integer=True))
    grid[-1].set_xlabel("epoch")
    return figure


def in_words(trace: Trace, measures: Sequence[str]) -> str:
    """Return where the lines end, for readers who cannot see them."""
    parts = []
    for measure in measures:
        ends = (f"{short(label)} {band.mean[-1]:.1f} %" for label, band in trace.bands[measure].items())
        parts.append(f"{NAMES[measure]}: {', '.join(ends) or 'not measured'}")
    title = f"{short(trace.group.title, 60)}. " if trace.group.title else ""
    return f"{title}After the last epoch, {'; '.join(parts)}."
