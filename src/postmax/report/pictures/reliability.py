"""Reliability diagrams: how often predictions with a given confidence are right."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from postmax.report.content import Group, Series
from postmax.report.pictures.canvas import IN_FILE_ONLY, INK, margins, new_figure, per_cent, short
from postmax.train.records import Reliability

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The fewest rows in a bin, over all seeds, for which its accuracy is drawn.
_FEWEST = 10


@dataclass(frozen=True)
class Pooled:
    """The bins of all seeds together; confidence, accuracy and share in per cent."""

    confidence: tuple[float, ...]
    accuracy: tuple[float, ...]
    share: tuple[float, ...]
    enough: tuple[bool, ...]


def calibration_error(one: Reliability) -> float:
    """Return the expected calibration error: the gap between confidence and accuracy, weighted by rows."""
    rows = sum(one["count"])
    gaps = zip(one["count"], one["confidence"], one["accuracy"], strict=True)
    return sum(count * abs(confidence - accuracy) for count, confidence, accuracy in gaps) / rows if rows else 0.0


def mean_error(series: Series) -> float:
    """Return the calibration error in per cent, the mean over the seeds."""
    return 100 * statistics.fmean(map(calibration_error, series.reliability))


def pool(series: Series) -> Pooled:
    """Return the bins of all seeds together. Empty bins are left out."""
    bins = []
    rows = sum(sum(one["count"]) for one in series.reliability)
    for b in range(max(len(one["count"]) for one in series.reliability)):
        seeds = [one for one in series.reliability if b < len(one["count"])]
        count = sum(one["count"][b] for one in seeds)
        if count:
            confidence = sum(one["count"][b] * one["confidence"][b] for one in seeds) / count
            accuracy = sum(one["count"][b] * one["accuracy"][b] for one in seeds) / count
            bins.append((100 * confidence, 100 * accuracy, 100 * count / rows, count >= _FEWEST))
    columns = list(zip(*bins, strict=True)) or [(), (), (), ()]
    return Pooled(*columns)


def reliability_figure(group: Group, colours: Mapping[str, str]) -> Figure:
    """Return the diagram, with a histogram of the confidence below it."""
    figure = new_figure(4.2, group.title)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    margins(figure, left=0.8, right=0.3, bottom=0.52, top=0.1, between=0.14)
    upper.plot([0, 100], [0, 100], color=INK, linewidth=0.8, linestyle="dotted")
    least = 95.0
    for series in drawn(group):
        pooled, colour = pool(series), colours[series.label]
        points = [
            point[:2] for point in zip(pooled.confidence, pooled.accuracy, pooled.enough, strict=True) if point[2]
        ]
        least = min([least, *(value for point in points for value in point)])
        x, y = zip(*points, strict=True) if points else ((), ())
        label = f"{short(series.label, 20)} {mean_error(series):.1f} %"
        upper.plot(x, y, "o-", color=colour, markersize=3.5, linewidth=1.4, label=label)
        lower.plot(pooled.confidence, pooled.share, color=colour, linewidth=1.4, drawstyle="steps-mid")
    start = max(0.0, least - 3)
    upper.set(xlim=(start, 101), ylim=(start, 101), ylabel="accuracy")
    lower.set(ylim=(0, None), xlabel="confidence", ylabel="rows")
    for axis, most in ((upper.yaxis, 6), (lower.yaxis, 3), (lower.xaxis, 6)):
        per_cent(axis, most)
    upper.legend(fontsize=8.5, title="calibration error", title_fontsize=8.5, loc="lower right").set_gid(
        f"{IN_FILE_ONLY}-legend"
    )
    return figure


def drawn(group: Group) -> list[Series]:
    """Return the series that have bins."""
    return [series for series in group.series if any(sum(one["count"]) for one in series.reliability)]


def in_words(group: Group) -> str:
    """Return the calibration errors, for readers who cannot see the diagram."""
    errors = ", ".join(f"{short(series.label)} {mean_error(series):.1f} %" for series in drawn(group))
    title = f" of {short(group.title, 60)}" if group.title else ""
    return f"Reliability diagram{title}. Calibration errors: {errors}."
