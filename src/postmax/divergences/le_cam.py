"""The Le Cam divergence."""

from __future__ import annotations

from torch import Tensor

from postmax.divergences.base import ClosedForm
from postmax.divergences.catalogue import register


class LeCam(ClosedForm):
    """Le Cam: f(u) = (u − 1)²/(2(u + 1)). Score and penalty are both bounded."""

    name = "lecam"
    domain = (-1.5, 0.5)

    def f(self, u: Tensor) -> Tensor:
        return (u - 1).square() / (2 * (u + 1))

    def score(self, s: Tensor) -> Tensor:
        return (s / 2).tanh() * (0.5 + (-s).sigmoid())

    def penalty(self, s: Tensor) -> Tensor:
        return (s / 2).tanh() * (0.5 + s.sigmoid())

    def score_slope(self, s: Tensor) -> Tensor:
        return 4 * s.sigmoid() * (-s).sigmoid().square()

    def penalty_slope(self, s: Tensor) -> Tensor:
        return 4 * s.sigmoid().square() * (-s).sigmoid()

    def log_ratio(self, t: Tensor) -> Tensor:
        # t = 1/2 − 2/(1 + u)², so 1 + u = (1/4 − t/2)^(−1/2); expm1 keeps the digits of a small u.
        return (-0.5 * (-(1.5 + t) / 2).log1p()).expm1().log()


register("lecam", LeCam, aliases=("le cam",), order=10)
