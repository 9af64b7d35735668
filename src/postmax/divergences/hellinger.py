"""The squared Hellinger distance."""

from __future__ import annotations

import math

from torch import Tensor

from postmax.divergences.base import ClosedForm
from postmax.divergences.catalogue import register


class SquaredHellinger(ClosedForm):
    """Squared Hellinger: f(u) = (√u − 1)²."""

    name = "hellinger"
    domain = (-math.inf, 1.0)

    def f(self, u: Tensor) -> Tensor:
        return (u.sqrt() - 1).square()

    def score(self, s: Tensor) -> Tensor:
        return -(-s / 2).expm1()

    def penalty(self, s: Tensor) -> Tensor:
        return (s / 2).expm1()

    def score_slope(self, s: Tensor) -> Tensor:
        return (-s / 2).exp() / 2

    def penalty_slope(self, s: Tensor) -> Tensor:
        return (s / 2).exp() / 2

    def log_ratio(self, t: Tensor) -> Tensor:
        return -2 * (-t).log1p()


register("hellinger", SquaredHellinger, aliases=("squared hellinger",), order=8)
