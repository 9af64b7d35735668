"""The Pearson χ² divergence."""

from __future__ import annotations

import math

from torch import Tensor

from postmax.divergences.base import ClosedForm
from postmax.divergences.catalogue import register


class Pearson(ClosedForm):
    """Pearson χ²: f(u) = (u − 1)². It gives the Brier score."""

    name = "pearson"
    domain = (-2.0, math.inf)

    def f(self, u: Tensor) -> Tensor:
        return (u - 1).square()

    def score(self, s: Tensor) -> Tensor:
        return 2 * s.expm1()

    def penalty(self, s: Tensor) -> Tensor:
        return (2 * s).expm1()

    def score_slope(self, s: Tensor) -> Tensor:
        return 2 * s.exp()

    def penalty_slope(self, s: Tensor) -> Tensor:
        return 2 * (2 * s).exp()

    def log_ratio(self, t: Tensor) -> Tensor:
        return (t / 2).log1p()


register("pearson", Pearson, aliases=("chi2", "chi-squared", "pearson chi2"), order=6)
