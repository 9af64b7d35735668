"""Tests that say whether the difference between two cells may be chance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from postmax.errors import InputError
from postmax.extras import need


@dataclass(frozen=True)
class PairedTest:
    """The result of comparing two cells on the seeds that both have.

    Attributes:
        n: The number of common seeds.
        difference: The mean of the first minus the second; NaN without a common seed.
        p_value: Two-sided; None for fewer than two common seeds, with which nothing can be tested.
    """

    n: int
    difference: float
    p_value: float | None


def paired_test(first: Mapping[int, float], second: Mapping[int, float], overlap: float = 0.0) -> PairedTest:
    """Compare two cells, each given as {seed: value}, on the seeds they share, by a paired t-test.

    Where every seed splits the same rows anew, the splits overlap. The seeds are then not independent, and the plain
    test calls a chance difference significant several times too often. Nadeau and Bengio (2003) therefore use
    s² · (1/n + overlap) instead of s²/n as the variance of the mean difference.

    Where the two cells do not differ on any seed, p is 1. Where they differ by the same amount on every seed, t is
    infinite, and p = 0 would claim certainty from as few as two seeds. The p-value of the sign test is returned
    instead: 2 / 2ⁿ, where n is the number of independent seeds that are worth as much as the overlapping ones.

    Args:
        first: The values of the first cell, by seed.
        second: The values of the second cell, by seed.
        overlap: Test rows divided by training rows if each seed has its own random split of the same rows; else 0.

    Raises:
        InputError: If a value is not finite, or the overlap is negative.

    Example:
        >>> a, b = {0: 95.0, 1: 96.0, 2: 94.5}, {0: 94.0, 1: 94.0, 2: 94.0}
        >>> round(paired_test(a, b).p_value, 3), round(paired_test(a, b, overlap=0.25).p_value, 3)
        (0.118, 0.184)
    """
    if not 0 <= overlap < math.inf:
        raise InputError(f"overlap is test rows by training rows, so at least 0; got {overlap}.")
    seeds = sorted(first.keys() & second.keys())
    values = [(first[seed], second[seed]) for seed in seeds]
    if not all(math.isfinite(value) for pair in values for value in pair):
        raise InputError("a paired test needs finite values; leave out the seeds that failed.")
    # Rounded, so that differences which are equal up to the last bits count as equal.
    differences = [round(a - b, 9) for a, b in values]
    n = len(differences)
    if n < 2:
        return PairedTest(n, differences[0] if n else math.nan, None)
    return PairedTest(n, statistics.fmean(differences), _p_value(differences, overlap))


def _p_value(differences: Sequence[float], overlap: float) -> float:
    n = len(differences)
    if not any(differences):
        return 1.0
    if len(set(differences)) == 1:
        return float(min(1.0, 2.0 ** (1 - n / (1 + n * overlap))))
    error = statistics.stdev(differences) * math.sqrt(1 / n + overlap)
    # Student's distribution function. `scipy.stats.t.sf` calls the same one, but takes a second to import.
    return float(2 * need("scipy.special", "train").stdtr(n - 1, -abs(statistics.fmean(differences)) / error))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values with Holm's correction for the number of comparisons. None is not a comparison and stays.

    Example:
        >>> holm([0.01, None, 0.04])
        [0.02, None, 0.04]
    """
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    result: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p))
        result[place] = largest
    return result
