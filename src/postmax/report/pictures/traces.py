"""The numbers of the learning curves: mean and standard deviation over the seeds, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from postmax.report.content import Group, Series
from postmax.train.records import EpochRecord

TEST, MEMORISED = "test_accuracy", "wrong_labels_learnt"
RIGHT, RECOVERED = "right_labels_learnt", "wrong_labels_recovered"
NAMES = {
    TEST: "test accuracy",
    MEMORISED: "wrong labels learnt",
    RIGHT: "right labels learnt",
    RECOVERED: "wrong labels recovered",
}
_POINTS = 120


@dataclass(frozen=True)
class Band:
    """Mean and standard deviation over the seeds, epoch by epoch; shares are in per cent."""

    epochs: tuple[int, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class Trace:
    """A group with its curves: by measure, then by label."""

    group: Group
    bands: dict[str, dict[str, Band]]


def trace(group: Group) -> Trace:
    """Return all curves of a group."""
    bands = {measure: {series.label: band(series, measure) for series in group.series} for measure in NAMES}
    return Trace(group, {name: {label: one for label, one in part.items() if one} for name, part in bands.items()})


def measured(traces: Sequence[Trace], measures: Iterable[str]) -> list[str]:
    """Return the measures that at least one of the traces has."""
    return [name for name in measures if any(one.bands[name] for one in traces)]


def band(series: Series, measure: str) -> Band | None:
    """Return a measure over time; None if no epoch has it. A seed that stopped early counts as far as it came."""
    key = f"{series.reading}_{measure}" if measure == TEST and series.reading != "model" else measure
    return band_of(series.metrics, key)


def band_of(records: Iterable[EpochRecord], key: str, scale: float = 100.0) -> Band | None:
    """Return an entry of the records over time, times the scale; None if no epoch has it."""
    found: dict[int, list[float]] = {}
    for record in records:
        value = record.get(key)
        if isinstance(value, int | float) and value == value:
            found.setdefault(record["epoch"], []).append(scale * value)
    epochs = _thinned(sorted(found))
    if not epochs:
        return None
    mean = tuple(float(np.mean(found[epoch])) for epoch in epochs)
    std = tuple(float(np.std(found[epoch], ddof=1)) if len(found[epoch]) > 1 else 0.0 for epoch in epochs)
    return Band(tuple(epochs), mean, std)


def _thinned(epochs: list[int]) -> list[int]:
    """Return no more epochs than can be told apart in a plot. The first and the last always stay."""
    step = -(-len(epochs) // _POINTS) if epochs else 1
    return epochs[:-1:step] + epochs[-1:]
