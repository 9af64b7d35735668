"""The shifted-log divergences: a family with one parameter."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from postmax.divergences.base import ClosedForm
from postmax.divergences.catalogue import register
from postmax.divergences.stable import softplus_minus_sigmoid, softplus_sum_and_sigmoid
from postmax.errors import InputError


class ShiftedLog(ClosedForm):
    """Shifted log: f(u) = −log(u + k), k > 0; SL is k = 1. The score lies in (−1/k, 0), so the loss is bounded."""

    def __init__(self, k: float = 1.0) -> None:
        if not (0 < k < math.inf):
            raise InputError(f"the shifted-log divergence −log(u + k) needs 0 < k < inf, got k = {k}.")
        self.k = float(k)
        self._is_sl = k == 1
        self.name = "sl" if k == 1 else f"sl:{k:g}"
        self.domain = (-1 / self.k, 0.0)

    def _share(self, s: Tensor) -> Tensor:
        """Return u/(u + k)."""
        if self._is_sl:
            return s.sigmoid()
        left, right = s.clamp_max(0).exp(), (-s.clamp_min(0)).exp()
        return torch.where(s > 0, 1 / (1 + self.k * right), left / (self.k + left))

    def _reciprocal(self, s: Tensor) -> Tensor:
        """Return 1/(u + k)."""
        if self._is_sl:
            return (-s).sigmoid()
        left, right = s.clamp_max(0).exp(), (-s.clamp_min(0)).exp()
        return torch.where(s > 0, right / (1 + self.k * right), 1 / (self.k + left))

    def f(self, u: Tensor) -> Tensor:
        return -(u + self.k).log()

    def score(self, s: Tensor) -> Tensor:
        return -self._reciprocal(s)

    def penalty(self, s: Tensor) -> Tensor:
        if self._is_sl:
            return softplus_minus_sigmoid(s)
        log_k = math.log(self.k)
        return softplus_minus_sigmoid(s - log_k) + log_k

    def score_slope(self, s: Tensor) -> Tensor:
        return self._share(s) * self._reciprocal(s)

    def penalty_slope(self, s: Tensor) -> Tensor:
        return self._share(s).square()

    def penalty_sum_and_slope(self, s: Tensor) -> tuple[Tensor, Tensor]:
        if not self._is_sl:
            return super().penalty_sum_and_slope(s)
        total, sigmoid = softplus_sum_and_sigmoid(s)
        return total.sub_(sigmoid.sum(-1)), sigmoid.square_()

    def log_ratio(self, t: Tensor) -> Tensor:
        return (t * self.k).log1p() - (-t).log()


register("sl", ShiftedLog, aliases=("shifted log",), parameter="k", order=3)
