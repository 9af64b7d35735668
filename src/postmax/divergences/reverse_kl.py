"""The reverse Kullback–Leibler divergence."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from postmax.divergences.base import ClosedForm
from postmax.divergences.catalogue import register


class ReverseKL(ClosedForm):
    """Reverse KL: f(u) = −log u. The score slope grows like 1/u, so it is trained tempered."""

    name = "rkl"
    domain = (-math.inf, 0.0)

    def f(self, u: Tensor) -> Tensor:
        return -u.log()

    def score(self, s: Tensor) -> Tensor:
        return -(-s).exp()

    def penalty(self, s: Tensor) -> Tensor:
        return s - 1

    def score_slope(self, s: Tensor) -> Tensor:
        return (-s).exp()

    def penalty_slope(self, s: Tensor) -> Tensor:
        return torch.ones_like(s)

    def log_ratio(self, t: Tensor) -> Tensor:
        return -(-t).log()


register("rkl", ReverseKL, aliases=("reverse kl",), order=5)
