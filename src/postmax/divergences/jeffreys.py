"""The Jeffreys divergence."""

from __future__ import annotations

from torch import Tensor

from postmax.divergences.base import ClosedForm
from postmax.divergences.catalogue import register
from postmax.divergences.elementwise import invert_increasing


class Jeffreys(ClosedForm):
    """Jeffreys: f(u) = (u − 1) log u, KL plus reverse KL. It is trained tempered, see `Tempered`."""

    name = "jeffreys"

    def f(self, u: Tensor) -> Tensor:
        return (u - 1) * u.log()

    def score(self, s: Tensor) -> Tensor:
        return s - (-s).expm1()

    def penalty(self, s: Tensor) -> Tensor:
        return s + s.expm1()

    def score_slope(self, s: Tensor) -> Tensor:
        return 1 + (-s).exp()

    def penalty_slope(self, s: Tensor) -> Tensor:
        return 1 + s.exp()

    def log_ratio(self, t: Tensor) -> Tensor:
        """Return the s with T(s) = t, by bisection.

        The inverse is −log W(e^(1−t)), and torch does not have the Lambert function W.
        """
        return invert_increasing(self.score, t)


register("jeffreys", Jeffreys, aliases=("jeffrey",), order=9)
