"""The α-divergences: a family with one parameter."""

from __future__ import annotations

import math

from torch import Tensor

from postmax.divergences.base import ClosedForm
from postmax.divergences.catalogue import register
from postmax.divergences.stable import scaled_expm1
from postmax.errors import InputError


class Alpha(ClosedForm):
    """α-divergence: f(u) = (u^α − 1 − α(u − 1)) / (α(α − 1)), with its limits at 0 and 1.

    The score is (e^((α−1)s) − 1)/(α − 1) and the penalty (e^(αs) − 1)/α: α = 2, ½, −1 are half of Pearson, twice
    squared Hellinger and half of Neyman; 1 and 0 are KL and reverse KL up to constants and a term linear in u.
    """

    def __init__(self, alpha: float = 0.5) -> None:
        if not math.isfinite(alpha):
            raise InputError(f"the α-divergence needs a finite α, got {alpha}.")
        self.alpha = float(alpha)
        self.name = f"alpha:{alpha:g}"
        rate = self.alpha - 1
        self.domain = (-1 / rate if rate > 0 else -math.inf, -1 / rate if rate < 0 else math.inf)

    def f(self, u: Tensor) -> Tensor:
        s = u.log()
        if self.alpha == 1:
            return u * s - (u - 1)
        return (scaled_expm1(s, self.alpha) - (u - 1)) / (self.alpha - 1)

    def score(self, s: Tensor) -> Tensor:
        return scaled_expm1(s, self.alpha - 1)

    def penalty(self, s: Tensor) -> Tensor:
        return scaled_expm1(s, self.alpha)

    def score_slope(self, s: Tensor) -> Tensor:
        return ((self.alpha - 1) * s).exp()

    def penalty_slope(self, s: Tensor) -> Tensor:
        return (self.alpha * s).exp()

    def log_ratio(self, t: Tensor) -> Tensor:
        rate = self.alpha - 1
        return t * 1.0 if rate == 0 else (rate * t).log1p() / rate


register("alpha", Alpha, parameter="α", order=11)
