"""The Neyman χ² divergence."""

from __future__ import annotations

import math

from torch import Tensor

from postmax.divergences.base import ClosedForm
from postmax.divergences.catalogue import register


class Neyman(ClosedForm):
    """Neyman χ²: f(u) = (1 − u)²/u. The score slope grows like 1/u², so it is trained tempered."""

    name = "neyman"
    domain = (-math.inf, 1.0)

    def f(self, u: Tensor) -> Tensor:
        return (1 - u).square() / u

    def score(self, s: Tensor) -> Tensor:
        return -(-2 * s).expm1()

    def penalty(self, s: Tensor) -> Tensor:
        return -2 * (-s).expm1()

    def score_slope(self, s: Tensor) -> Tensor:
        return 2 * (-2 * s).exp()

    def penalty_slope(self, s: Tensor) -> Tensor:
        return 2 * (-s).exp()

    def log_ratio(self, t: Tensor) -> Tensor:
        return -(-t).log1p() / 2


register("neyman", Neyman, aliases=("neyman chi2",), order=7)
