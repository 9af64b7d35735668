"""Rows that are not in random order: sorted, in blocks, or drifting."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from postmax.auditing.catalogue import register
from postmax.auditing.judged import Judged, Numbers
from postmax.checking import Finding

_FEW_ROWS, _LEVEL = 50, 1e-4
_REMEDY = (
    "Shuffle rows before they are divided into parts. If they are in the order of time, hold out the last ones instead."
)


def find(data: Judged) -> Iterator[Finding]:
    """Yield that labels or features follow the order of the rows. Files of images have no order of their own."""
    if len(data.codes) < _FEW_ROWS or data.data.rows.kind == "file" or len(data.codes) < data.data.total:
        return
    runs = label_runs(data.codes)
    if _chance(runs) < _LEVEL:
        how = "stand together" if runs < 0 else "alternate"
        text = f"The rows are not in random order: equal labels {how} more often than chance makes them do."
        yield Finding("row order", text, _REMEDY, severity="note")
        return
    columns = {name: values for name, values in data.data.numbers.items() if name not in data.data.row_names}
    signs = {name: strongest_trend(values) for name, values in columns.items()}
    trends = {name: sign for name, sign in signs.items() if _chance(sign) * 2 * max(1, len(signs)) < _LEVEL}
    if trends:
        name = max(trends, key=lambda one: abs(trends[one]))
        more = f" and {len(trends) - 1:,} more" if len(trends) > 1 else ""
        text = f"The rows are not in random order: {data.data.called(name)}{more} changes along the rows."
        yield Finding("row order", text, _REMEDY, columns=tuple(trends)[:20], severity="note")


def label_runs(codes: npt.NDArray[np.int64]) -> float:
    """Return how many standard deviations the number of runs of equal labels is above that of a random order.

    Mean and variance are those of Barton and David for several kinds.

    Example:
        >>> label_runs(np.repeat([0, 1], 50)) < -9, abs(label_runs(np.random.default_rng(0).permutation(100) % 2)) < 3
        (True, True)
    """
    n, counts = float(len(codes)), np.bincount(codes).astype(float)
    squares, cubes = (counts**2).sum(), (counts**3).sum()
    mean = (n * (n + 1) - squares) / n
    variance = (squares * (squares + n * (n + 1)) - 2 * n * cubes - n**3) / (n**2 * (n - 1))
    runs = 1 + int((codes[1:] != codes[:-1]).sum())
    return float((runs - mean) / math.sqrt(variance)) if variance > 0 else 0.0


def strongest_trend(values: Numbers) -> float:
    """Return by how many standard deviations a column follows the order: its trend, or the likeness of neighbours.

    Both are correlations of ranks. Missing numbers are left out.
    """
    present = values[np.isfinite(values)]
    if len(present) < _FEW_ROWS:
        return 0.0
    _, place, count = np.unique(present, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - 0.5 * (count + 1))[place]
    ranks = ranks - ranks.mean()
    power = float((ranks**2).sum())
    if power == 0:
        return 0.0
    n = len(ranks)
    order = np.arange(n) - (n - 1) / 2
    trend = float((ranks * order).sum()) / math.sqrt(power * float((order**2).sum())) * math.sqrt(n - 1)
    alike = (float((ranks[1:] * ranks[:-1]).sum()) / power + 1 / n) * math.sqrt(n)
    return max(trend, alike, key=abs)


def _chance(deviations: float) -> float:
    return math.erfc(abs(deviations) / math.sqrt(2))


register("row order", find, order=20)
