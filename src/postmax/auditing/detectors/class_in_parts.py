"""One label whose rows fall into two separate parts: perhaps two classes that were merged under one name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from postmax.auditing.catalogue import register
from postmax.auditing.judged import Judged, Numbers
from postmax.checking import Finding

_SMALLEST, _MOST_ROWS, _DIRECTIONS = 60, 2_000, 10
_STEPS, _BINS = 30, 3
# In the middle between the parts there are so few rows, relative to their own middles.
_VALLEY, _PART = 0.12, 0.15


def find(data: Judged) -> Iterator[Finding]:
    """Yield the classes that have a gap in the middle along a line on which no other class has one."""
    if not data.features.shape[1]:
        return
    counts = np.bincount(data.codes)
    for code in np.flatnonzero(counts >= _SMALLEST).tolist():
        # Rows with a wrong label would look like a part of their own.
        rows = np.flatnonzero((data.codes == code) & (data.right > 0.5))[:_MOST_ROWS]
        others = [np.flatnonzero(data.codes == other) for other in np.flatnonzero(counts >= _SMALLEST) if other != code]
        if len(rows) < _SMALLEST:
            continue
        line = gap(data.features[rows])
        if line is None:
            continue
        direction, middle = line
        # A column of two values has a gap in every class.
        if any(has_valley(data.features[other] @ direction) for other in others):
            continue
        above = data.features[rows] @ direction > middle
        text = (
            f"The rows labelled {data.name(code)} fall into two separate parts, of {above.sum():,} and "
            f"{(~above).sum():,} rows, such as {data.some(rows[above][:3])} and {data.some(rows[~above][:3])}."
        )
        remedy = "If these are two classes, give them two names."
        yield Finding("class in parts", text, remedy, rows=data.at(rows[above]), severity="note")


def gap(features: Numbers) -> tuple[Numbers, float] | None:
    """Return a direction in which rows fall into two parts, and the middle; None if there is none.

    The direction is found on every other row, and judged by the rows between, so that chance finds no gap.
    """
    centred = features - features.mean(0)
    _, _, turn = np.linalg.svd(centred[::2], full_matrices=False)
    few = centred @ turn[:_DIRECTIONS].T
    two = _two_means(few[::2])
    if two is None:
        return None
    length = float(np.linalg.norm(two[1] - two[0]))
    if length == 0:
        return None
    direction = (two[1] - two[0]) / length
    if not has_valley(few[1::2] @ direction):
        return None
    full = turn[:_DIRECTIONS].T @ direction
    middle = float((two.mean(0) @ direction) + features.mean(0) @ full)
    return full, middle


def has_valley(values: Numbers) -> bool:
    """Return whether numbers fall into two parts with hardly anything between them.

    Example:
        >>> chance = np.random.default_rng(0)
        >>> has_valley(chance.normal(size=300)), has_valley(chance.random(300))
        (False, False)
        >>> has_valley(np.append(chance.normal(size=150), chance.normal(6, 1, 150)))
        True
    """
    two = _two_means(values[:, None])
    if two is None:
        return False
    low, high = sorted(two[:, 0].tolist())
    width = (high - low) / _BINS
    if width == 0:
        return False
    share = float((values > (low + high) / 2).mean())
    if not _PART <= share <= 1 - _PART:
        return False
    inside, below, above = (
        float(((values > at - width / 2) & (values <= at + width / 2)).mean()) for at in ((low + high) / 2, low, high)
    )
    return inside < _VALLEY * min(below, above)


def _two_means(rows: Numbers) -> Numbers | None:
    """Return the centres of two parts, (2, d), from a start at the ends of the longest direction; None for few rows."""
    if len(rows) < 4:
        return None
    _, _, turn = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    second = (rows - rows.mean(0)) @ turn[0] > 0
    centres = np.zeros((2, rows.shape[1]))
    for _ in range(_STEPS):
        if second.all() or not second.any():
            return None
        centres = np.stack([rows[~second].mean(0), rows[second].mean(0)])
        new = ((rows - centres[1]) ** 2).sum(1) < ((rows - centres[0]) ** 2).sum(1)
        if (new == second).all():
            break
        second = new
    return centres


register("class in parts", find, order=50)
