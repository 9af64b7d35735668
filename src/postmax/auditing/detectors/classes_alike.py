"""Two labels that the features do not tell apart: perhaps one class that was split under two names."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from postmax.auditing.catalogue import register
from postmax.auditing.judged import Judged, Numbers
from postmax.checking import Finding

_SMALLEST, _LIMIT, _SHOWN, _MOST_CLASSES = 15, 0.65, 5, 300
_SURE = 1.645


def find(data: Judged) -> Iterator[Finding]:
    """Yield pairs of labels whose rows the model ranks hardly better than a coin does, though it tells others apart.

    Of two classes in all, this would be the finding that nothing can be told.
    """
    k = data.posterior.shape[1]
    if not 2 < k <= _MOST_CLASSES:
        return
    counts = np.bincount(data.codes, minlength=k)
    usual = [code for code in range(k) if counts[code] >= _SMALLEST]
    found: list[tuple[float, int, int]] = []
    for place, first in enumerate(usual):
        for second in usual[place + 1 :]:
            one, other = (data.posterior[data.codes == code][:, [first, second]] for code in (first, second))
            area = ranked_right(_share(one), _share(other))
            if area + _SURE * _error(area, len(one), len(other)) < _LIMIT:
                found.append((area, first, second))
    if len(found) >= len(usual) * (len(usual) - 1) / 2:
        return  # nothing can be told at all
    for area, first, second in sorted(found)[:_SHOWN]:
        text = (
            f"The features do not tell {data.name(first)} from {data.name(second)}: of two rows, one of each label, "
            f"the right one is found in {max(0.5, area):.0%} of the cases."
        )
        remedy = "If both names mean the same class, merge them. Otherwise labels of these two cannot be judged."
        yield Finding("classes alike", text.replace("%", " %"), remedy, severity="note")


def ranked_right(first: Numbers, second: Numbers) -> float:
    """Return how often a number of the first kind is larger than one of the second; equal numbers count one half.

    Example:
        >>> ranked_right(np.array([0.9, 0.5]), np.array([0.5, 0.1]))
        0.875
    """
    sorted_second = np.sort(second)
    below = np.searchsorted(sorted_second, first, side="left")
    upto = np.searchsorted(sorted_second, first, side="right")
    return float((below + upto).mean() / (2 * len(second)))


def _share(pair: Numbers) -> Numbers:
    """Return the share of the first class among both."""
    found: Numbers = (pair[:, 0] + 1e-12) / (pair.sum(1) + 2e-12)
    return found


def _error(area: float, first: int, second: int) -> float:
    """Return the standard error of `ranked_right`, by the formula of Hanley and McNeil."""
    both, twice = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (first - 1) * (both - area**2) + (second - 1) * (twice - area**2)
    return math.sqrt(max(spread, 0.0) / (first * second))


register("classes alike", find, order=40)
