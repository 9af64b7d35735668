"""The divergence of generative adversarial networks (Goodfellow et al. 2014)."""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn.functional import logsigmoid

from postmax.divergences.base import ClosedForm
from postmax.divergences.catalogue import register
from postmax.divergences.stable import softplus, softplus_sum_and_sigmoid


class GAN(ClosedForm):
    """GAN: f(u) = u log u − (u + 1) log(u + 1). Both slopes are bounded by one."""

    name = "gan"
    domain = (-math.inf, 0.0)

    def f(self, u: Tensor) -> Tensor:
        return u * u.log() - (u + 1) * u.log1p()

    def score(self, s: Tensor) -> Tensor:
        return logsigmoid(s)

    def penalty(self, s: Tensor) -> Tensor:
        return softplus(s)

    def score_slope(self, s: Tensor) -> Tensor:
        return (-s).sigmoid()

    def penalty_slope(self, s: Tensor) -> Tensor:
        return s.sigmoid()

    def penalty_sum_and_slope(self, s: Tensor) -> tuple[Tensor, Tensor]:
        return softplus_sum_and_sigmoid(s)

    def log_ratio(self, t: Tensor) -> Tensor:
        return t - (-t.expm1()).log()


register("gan", GAN, order=2)
