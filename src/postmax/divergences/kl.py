"""The Kullback–Leibler divergence."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.divergences.base import ClosedForm
from postmax.divergences.catalogue import register


class KullbackLeibler(ClosedForm):
    """KL: f(u) = u log u. With the softmax link this is cross-entropy."""

    name = "kl"

    def f(self, u: Tensor) -> Tensor:
        return u * u.log()

    def score(self, s: Tensor) -> Tensor:
        return s + 1

    def penalty(self, s: Tensor) -> Tensor:
        return s.exp()

    def score_slope(self, s: Tensor) -> Tensor:
        return torch.ones_like(s)

    def penalty_slope(self, s: Tensor) -> Tensor:
        return s.exp()

    def penalty_sum_and_slope(self, s: Tensor) -> tuple[Tensor, Tensor]:
        u = s.exp()
        return u.sum(-1), u

    def log_ratio(self, t: Tensor) -> Tensor:
        return t - 1


register("kl", KullbackLeibler, aliases=("kullback-leibler", "forward kl"), order=1)
