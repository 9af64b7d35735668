"""The learning curves of a single run: accuracies, wrong labels and loss, with the epoch of the result marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from postmax.extras import need
from postmax.report.pictures.canvas import INK, PALETTE, margins, new_figure, per_cent
from postmax.report.pictures.traces import MEMORISED, RECOVERED, RIGHT, TEST, Band, band_of
from postmax.train.records import EpochRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Line:
    """One line of a plot."""

    label: str
    colour: str
    band: Band


@dataclass(frozen=True)
class Curves:
    """One plot.

    Attributes:
        title: Its title.
        about: A sentence that says how to read it.
        lines: Its lines.
        shares: Whether the lines are in per cent.
    """

    title: str
    about: str
    lines: tuple[Line, ...]
    shares: bool = True


def curves_of(records: Sequence[EpochRecord], readings: Sequence[tuple[str, str]]) -> list[Curves]:
    """Return the plots that a run has something to draw for. A single epoch is no curve.

    Args:
        records: The lines of metrics.jsonl, of all seeds.
        readings: The name of each reading in the records, and what the plot calls it.
    """
    tests = [
        (TEST if name == "model" else f"{name}_{TEST}", f"test rows, {label}" if len(readings) > 1 else "test rows")
        for name, label in readings
    ]
    accuracy = [*tests, ("train_accuracy", "training labels as given"), ("val_accuracy", "validation labels as given")]
    wrong = [(MEMORISED, "the wrong label (memorised)"), (RECOVERED, "the true class (recovered)")]
    plots = [
        Curves("Accuracy", "how often the prediction is the label.", _lines(records, accuracy)),
        Curves(
            "Training rows with a wrong label",
            "which class is predicted for them while training.",
            _lines(records, [*wrong, (RIGHT, "for comparison: right labels learnt")])
            if _any(records, MEMORISED)
            else (),
        ),
        Curves(
            "Loss",
            "the mean of the training loss in each epoch.",
            _lines(records, [("loss", "training loss")], 1.0),
            False,
        ),
    ]
    return [plot for plot in plots if plot.lines]


def _any(records: Sequence[EpochRecord], key: str) -> bool:
    return any(key in record for record in records)


def _lines(records: Sequence[EpochRecord], keys: Sequence[tuple[str, str]], scale: float = 100.0) -> tuple[Line, ...]:
    found = []
    for place, (key, label) in enumerate(keys):
        band = band_of(records, key, scale)
        if band is not None and len(band.epochs) > 1:
            found.append(Line(label, PALETTE[place % len(PALETTE)], band))
    return tuple(found)


def run_curves_figure(curves: Curves, selected: Sequence[int]) -> Figure:
    """Return the figure of one plot.

    Args:
        curves: What it shows.
        selected: The epochs that the result is taken from, one for each seed.
    """
    figure = new_figure(2.7, curves.title)
    axes = figure.subplots()
    margins(figure, left=0.62, right=0.12, bottom=0.5, top=0.08)
    for place, line in enumerate(curves.lines):
        band = line.band
        hides = any(band == other.band for other in curves.lines[:place])
        low = [mean - std for mean, std in zip(band.mean, band.std, strict=True)]
        high = [mean + std for mean, std in zip(band.mean, band.std, strict=True)]
        axes.fill_between(band.epochs, low, high, color=line.colour, alpha=0.12, linewidth=0)
        axes.plot(band.epochs, band.mean, color=line.colour, linewidth=1.6, linestyle=(0, (3, 3)) if hides else "solid")
    for epoch in sorted(set(selected)):
        axes.axvline(epoch, color=INK, linewidth=1.0, linestyle="dotted")
    if curves.shares:
        per_cent(axes.yaxis)
    axes.xaxis.set_major_locator(need("matplotlib.ticker", "plot").MaxNLocator(nbins=6, integer=True))
    axes.set_xlabel("epoch")
    return figure


def in_words(curves: Curves) -> str:
    """Return where the lines end, for readers who cannot see them."""
    unit = " %" if curves.shares else ""
    ends = (f"{line.label} {line.band.mean[-1]:.3g}{unit}" for line in curves.lines)
    return f"{curves.title}. After the last epoch: {', '.join(ends)}."
