"""The named divergences: one class each, every method exact and stable in s = log u.

Constants follow the generators as written. They never change a gradient or a posterior, but they do change the value
of the objective: f(1) = 0 holds for all of them except GAN (f(1) = −2 log 2) and SL (f(1) = −log 2), and the paper's
f* for SL leaves out the constant −1 that Fenchel's equality gives.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from postmax.divergences.base import ClosedForm, invert_increasing
from postmax.divergences.stable import log_mean_with_one, softplus, softplus_sum_and_sigmoid

LOG_2 = math.log(2)
INF = math.inf


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
        """The inverse, −log W(e^(1−t)), is not elementary and torch has no Lambert W: the score is bisected."""
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
