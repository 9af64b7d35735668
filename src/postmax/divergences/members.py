"""The divergences with closed forms: one class each, every method exact and stable in s = log u.

Constants follow the generators as written. They never change a gradient or a posterior, but they do change the value
of the objective: f(1) = 0 holds for all of them except GAN (f(1) = −2 log 2) and SL (f(1) = −log 2), and the paper's
f* for SL leaves out the constant −1 that Fenchel's equality gives.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from postmax.divergences.base import Divergence, invert_increasing
from postmax.divergences.stable import (
    log_mean_with_one,
    scaled_expm1,
    softplus,
    softplus_minus_sigmoid,
    softplus_sum_and_sigmoid,
)
from postmax.errors import InputError

LOG_2 = math.log(2)
INF = math.inf


class ClosedForm(Divergence):
    """A divergence whose methods are all written out."""

    def __init__(self) -> None:
        """Closed forms are checked by the tests, not at run time."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(vars(self).values())))


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


class KullbackLeiblerOnSimplex(KullbackLeibler):
    """KL where D sums to one: its penalty is then constant and cancels the constant of the score.

    What is left of the loss is −Σ q·s, cross-entropy to the last digit (summing D only to subtract one would cost the
    digits of a confident prediction).
    """

    def score(self, s: Tensor) -> Tensor:
        return s

    def penalty(self, s: Tensor) -> Tensor:
        return torch.zeros_like(s)

    def penalty_slope(self, s: Tensor) -> Tensor:
        return torch.zeros_like(s)

    def penalty_sum(self, s: Tensor) -> Tensor:
        return s.new_zeros(s.shape[:-1])

    def penalty_sum_and_slope(self, s: Tensor) -> tuple[Tensor, Tensor]:
        return self.penalty_sum(s), self.penalty_slope(s)


class GAN(ClosedForm):
    """GAN: f(u) = u log u − (u + 1) log(u + 1). Both slopes are bounded by one."""

    name = "gan"
    domain = (-INF, 0.0)

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


class JensenShannon(GAN):
    """JS: f(u) = u log u − (u + 1) log((u + 1)/2). GAN with the constants that make f(1) = 0."""

    name = "js"
    domain = (-INF, LOG_2)

    def f(self, u: Tensor) -> Tensor:
        return u * u.log() - (u + 1) * ((u - 1) / 2).log1p()

    def score(self, s: Tensor) -> Tensor:
        return -log_mean_with_one(-s)

    def penalty(self, s: Tensor) -> Tensor:
        return log_mean_with_one(s)

    def penalty_sum_and_slope(self, s: Tensor) -> tuple[Tensor, Tensor]:
        total, sigmoid = softplus_sum_and_sigmoid(s)
        return total - s.shape[-1] * LOG_2, sigmoid

    def log_ratio(self, t: Tensor) -> Tensor:
        return t - (-(t - LOG_2).expm1()).log() - LOG_2


class ShiftedLog(ClosedForm):
    """Shifted log: f(u) = −log(u + k), k > 0; SL is k = 1. The score lies in (−1/k, 0), so the loss is bounded."""

    def __init__(self, k: float = 1.0) -> None:
        if not (0 < k < INF):
            raise InputError(f"the shifted-log divergence −log(u + k) needs 0 < k < inf, got k = {k}.")
        self.k = float(k)
        self._is_sl = k == 1
        self.name = "sl" if k == 1 else f"sl:{k:g}"
        self.domain = (-1 / self.k, 0.0)

    def _share(self, s: Tensor) -> Tensor:
        """u/(u + k)."""
        if self._is_sl:
            return s.sigmoid()
        left, right = s.clamp_max(0).exp(), (-s.clamp_min(0)).exp()
        return torch.where(s > 0, 1 / (1 + self.k * right), left / (self.k + left))

    def _reciprocal(self, s: Tensor) -> Tensor:
        """1/(u + k)."""
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


class Alpha(ClosedForm):
    """α-divergence: f(u) = (u^α − 1 − α(u − 1)) / (α(α − 1)), with its limits at 0 and 1.

    The score is (e^((α−1)s) − 1)/(α − 1) and the penalty (e^(αs) − 1)/α: α = 2, ½, −1 are half of Pearson, twice
    squared Hellinger and half of Neyman; 1 and 0 are KL and reverse KL up to constants and a term linear in u.
    """

    def __init__(self, alpha: float = 0.5) -> None:
        if not math.isfinite(alpha):
            raise InputError(f"the α-divergence needs a finite α, got {alpha}.")
        self.alpha = float(alpha)
        self.name = f"alpha:{alpha:g}"
        rate = self.alpha - 1
        self.domain = (-1 / rate if rate > 0 else -INF, -1 / rate if rate < 0 else INF)

    def f(self, u: Tensor) -> Tensor:
        s = u.log()
        if self.alpha == 1:
            return u * s - (u - 1)
        return (scaled_expm1(s, self.alpha) - (u - 1)) / (self.alpha - 1)

    def score(self, s: Tensor) -> Tensor:
        return scaled_expm1(s, self.alpha - 1)

    def penalty(self, s: Tensor) -> Tensor:
        return scaled_expm1(s, self.alpha)

    def score_slope(self, s: Tensor) -> Tensor:
        return ((self.alpha - 1) * s).exp()

    def penalty_slope(self, s: Tensor) -> Tensor:
        return (self.alpha * s).exp()

    def log_ratio(self, t: Tensor) -> Tensor:
        rate = self.alpha - 1
        return t * 1.0 if rate == 0 else (rate * t).log1p() / rate


class ReverseKL(ClosedForm):
    """Reverse KL: f(u) = −log u. The score slope grows like 1/u: temper it to train with it."""

    name = "rkl"
    domain = (-INF, 0.0)

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


class Pearson(ClosedForm):
    """Pearson χ²: f(u) = (u − 1)². The Brier score in disguise."""

    name = "pearson"
    domain = (-2.0, INF)

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


class Neyman(ClosedForm):
    """Neyman χ²: f(u) = (1 − u)²/u. The score slope grows like 1/u²: temper it to train with it."""

    name = "neyman"
    domain = (-INF, 1.0)

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


class SquaredHellinger(ClosedForm):
    """Squared Hellinger: f(u) = (√u − 1)²."""

    name = "hellinger"
    domain = (-INF, 1.0)

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


class Jeffreys(ClosedForm):
    """Jeffreys: f(u) = (u − 1) log u, KL plus reverse KL. Temper it to train with it."""

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
        """S = −log W(e^(1−t)) has no elementary form; torch has no Lambert W, so the score is inverted by bisection."""
        return invert_increasing(self.score, t)


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
