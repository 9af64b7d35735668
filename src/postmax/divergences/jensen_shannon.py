"""The Jensen–Shannon divergence."""

from __future__ import annotations

import math

from torch import Tensor

from postmax.divergences.catalogue import register
from postmax.divergences.gan import GAN
from postmax.divergences.stable import log_mean_with_one, softplus_sum_and_sigmoid

_LOG_2 = math.log(2)


class JensenShannon(GAN):
    """JS: f(u) = u log u − (u + 1) log((u + 1)/2). It is GAN with constants that make f(1) = 0."""

    name = "js"
    domain = (-math.inf, _LOG_2)

    def f(self, u: Tensor) -> Tensor:
        return u * u.log() - (u + 1) * ((u - 1) / 2).log1p()

    def score(self, s: Tensor) -> Tensor:
        return -log_mean_with_one(-s)

    def penalty(self, s: Tensor) -> Tensor:
        return log_mean_with_one(s)

    def penalty_sum_and_slope(self, s: Tensor) -> tuple[Tensor, Tensor]:
        total, sigmoid = softplus_sum_and_sigmoid(s)
        return total - s.shape[-1] * _LOG_2, sigmoid

    def log_ratio(self, t: Tensor) -> Tensor:
        return t - (-(t - _LOG_2).expm1()).log() - _LOG_2


register("js", JensenShannon, aliases=("jensen-shannon",), order=4)
