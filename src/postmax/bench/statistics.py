"""What several seeds say: mean and spread, and whether a difference is more than chance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from postmax.errors import InputError
from postmax.extras import need


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation of n values; NaN where there are too few of them.

    Example:
        >>> print(summarise([94.0, 95.0, 96.0]))
        95.00 ± 1.00 (3)
    """

    mean: float
    std: float
    n: int

    def __str__(self) -> str:
        if not self.n:
            return "–"
        spread = f" ± {self.std:.2f}" if self.n > 1 else ""
        return f"{self.mean:.2f}{spread} ({self.n})"


def summarise(values: Sequence[float]) -> Summary:
    """Mean, sample standard deviation (n − 1) and n."""
    n = len(values)
    mean = statistics.fmean(values) if n else math.nan
    return Summary(mean, statistics.stdev(values) if n > 1 else math.nan, n)


@dataclass(frozen=True)
class PairedTest:
    """A comparison over the seeds that both have.

    Attributes:
        n: How many seeds that is.
        difference: Mean of first minus second; NaN without a common seed.
        p_value: Two-sided; None for fewer than two seeds, which say nothing about chance.
    """

    n: int
    difference: float
    p_value: float | None


def paired_test(
    first: Mapping[int, float], second: Mapping[int, float], *, method: Literal["t", "wilcoxon"] = "t"
) -> PairedTest:
    """Compare two cells, each given as {seed: value}, on the seeds they share.

    Where the two do not differ on any seed, p is 1. Where they differ by the same amount on every seed, t is infinite,
    and p = 0 would claim certainty from as few as two seeds; what the signs alone say is returned instead: 2 / 2ⁿ.

    Args:
        first: Values by seed.
        second: The same.
        method: "t" is the paired t-test; "wilcoxon" is the signed-rank test, which does not ask for normality.

    Raises:
        InputError: If a value is not finite, or the method is unknown.

    Example:
        >>> paired_test({0: 95.0, 1: 96.0, 2: 94.5}, {0: 94.0, 1: 94.0, 2: 94.0}).n
        3
    """
    seeds = sorted(first.keys() & second.keys())
    values = [(first[seed], second[seed]) for seed in seeds]
    if not all(math.isfinite(value) for pair in values for value in pair):
        raise InputError("a paired test needs finite values; leave out the seeds that failed.")
    # Accuracies come in steps: equal steps must count as equal, whatever the last bits say.
    differences = [round(a - b, 9) for a, b in values]
    n = len(differences)
    if n < 2:
        return PairedTest(n, differences[0] if n else math.nan, None)
    return PairedTest(n, statistics.fmean(differences), _p_value(differences, method))


def _p_value(differences: Sequence[float], method: str) -> float:
    if method not in ("t", "wilcoxon"):
        raise InputError(f"unknown paired test {method!r}; expected 't' or 'wilcoxon'.")
    if not any(differences):
        return 1.0
    stats = need("scipy.stats", "train")
    if method == "wilcoxon":
        return float(stats.wilcoxon(differences).pvalue)
    if len(set(differences)) == 1:
        return float(2.0 ** (1 - len(differences)))
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction for the number of comparisons; a None is no comparison and stays.

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
