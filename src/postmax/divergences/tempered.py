"""A divergence tamed below a floor, so that its gradients stay within what a learning rate can handle."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from postmax.divergences.base import Divergence
from postmax.errors import InputError


class Tempered(Divergence):
    """`base` for u ≥ floor, KL of the same slope below, scaled so that neither the floor nor u = 1 is steeper than one.

    Reverse KL, Neyman, Jeffreys and squared Hellinger have score slopes u·f''(u) that explode as u → 0: one confident
    mistake then outweighs the rest of the data. KL is the divergence whose slope is constant, so carrying on with KL
    below the floor gives again a strictly convex f, with everything that follows from it: the same posterior, the same
    theorems. A factor in front of f changes no posterior either.

    Args:
        base: The divergence to temper.
        floor: The density ratio below which KL takes over, in (0, 1).

    Example:
        >>> import torch
        >>> from postmax.divergences import get
        >>> tame = get("neyman").tempered(0.1)
        >>> s = torch.log(torch.tensor([1e-30, 0.1, 1.0]))
        >>> get("neyman").score_slope(s)
        tensor([     inf, 200.0000,   2.0000])
        >>> tame.score_slope(s)
        tensor([1.0000, 1.0000, 0.0100])
    """

    def __init__(self, base: Divergence, floor: float) -> None:
        if not 0 < floor < 1:
            raise InputError(f"the floor of a tempered divergence must lie in (0, 1), got {floor}.")
        self.base = base
        self.floor = float(floor)
        self.name = f"{base.name}, tempered at {floor:g}"
        self._log_floor = math.log(floor)
        edge = torch.tensor([self._log_floor, 0.0], dtype=torch.float64)
        self._slope: float
        self._slope, at_one = base.score_slope(edge).tolist()
        self._score, self._penalty = base.score(edge)[0].item(), base.penalty(edge)[0].item()
        self._scale: float = 1 / max(1.0, self._slope, at_one)
        self.domain = (-math.inf, base.domain[1] * self._scale)

    def _piecewise(self, s: Tensor, above: Tensor, below: Tensor) -> Tensor:
        return torch.where(s >= self._log_floor, above, below) * self._scale

    def _above(self, s: Tensor) -> Tensor:
        return s.clamp_min(self._log_floor)

    def f(self, u: Tensor) -> Tensor:
        """The tempered generator, from Fenchel's equality."""
        s = u.log()
        return u * self.score(s) - self.penalty(s)

    def score(self, s: Tensor) -> Tensor:
        """The base score, continued by its tangent in s."""
        return self._piecewise(s, self.base.score(self._above(s)), self._score + self._slope * (s - self._log_floor))

    def penalty(self, s: Tensor) -> Tensor:
        """The base penalty, continued so that its slope stays u times the score's."""
        below = self._penalty + self._slope * (s.clamp_max(self._log_floor).exp() - self.floor)
        return self._piecewise(s, self.base.penalty(self._above(s)), below)

    def score_slope(self, s: Tensor) -> Tensor:
        """The base slope, constant below the floor."""
        return self.base.score_slope(self._above(s)) * self._scale

    def penalty_slope(self, s: Tensor) -> Tensor:
        """U times the score slope."""
        below = self._slope * s.clamp_max(self._log_floor).exp()
        return self._piecewise(s, self.base.penalty_slope(self._above(s)), below)

    def log_ratio(self, t: Tensor) -> Tensor:
        """The inverse of the piecewise score."""
        t = t / self._scale
        above = self.base.log_ratio(t.clamp_min(self._score))
        return torch.where(t >= self._score, above, self._log_floor + (t - self._score) / self._slope)
