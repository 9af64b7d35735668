"""What an f-divergence is in postmax: a few functions of s = log D that are accurate for every s.

With `u = e^s` the posterior estimate (the "density ratio" of the paper),

* score          `T(s)  = f'(u)`, the T of the paper;
* penalty        `F(s)  = f*(T(s)) = u f'(u) − f(u)` (Fenchel's equality);
* score slope    `T'(s) = u f''(u)`, positive exactly when f is strictly convex;
* penalty slope  `F'(s) = u T'(s)`, because `(f*)'(T) = u`.

The gradient of the whole f-PML loss in s is `T'(s)·(c·u − q)`. It vanishes at `c·u = q` for every f. So the posterior
at the minimum does not depend on f, while the size of the gradients on the way does.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from postmax.divergences.elementwise import ElementwiseFunction, elementwise_derivative, invert_increasing
from postmax.errors import InputError


class Divergence:
    """An f-divergence, computed from `f` alone.

    The derivatives come from automatic differentiation, and everything else from Fenchel's equality. Subclasses
    replace the methods by closed forms in s that neither overflow nor lose digits.

    Powers of u = e^s overflow for large |s|. Therefore f is continued as KL of the same slope for |s| > 25 in float32
    and |s| > 200 in float64, so that extreme logits do not give NaN.

    Args:
        f: A strictly convex function of a positive tensor, elementwise, built from torch operations.
        name: Its name in results and error messages.
        domain: The range of f' over u > 0, if it is known.

    Raises:
        InputError: If `f` is not finite or not strictly convex on `(e^-4, e^4)`.

    Example:
        A divergence of your own in three lines:

        >>> import torch, postmax as pm
        >>> cubic = pm.divergences.Divergence(f=lambda u: u**3, name="cubic")
        >>> loss = pm.FPMLLoss(cubic, link="exp")
        >>> loss(torch.zeros(1, 3), torch.tensor([0]))  # −3 + 3·2
        tensor(3.)
    """

    name: str
    """Its name in `get`, results and messages."""

    domain: tuple[float, float] = (-math.inf, math.inf)
    """The open interval of scores t on which f* is smooth: the range of f' over u > 0."""

    def __init__(self, f: ElementwiseFunction, name: str, domain: tuple[float, float] = (-math.inf, math.inf)) -> None:
        self.name = name
        self.domain = domain
        self._f = f
        self._check_strictly_convex()

    # ---- Functions of u, as in textbooks ----

    def f(self, u: Tensor) -> Tensor:
        """Return the generator f at u > 0."""
        return self._f(u)

    def f_prime(self, u: Tensor) -> Tensor:
        """Return f'(u), the score as a function of the density ratio."""
        return self.score(u.log())

    # ---- Functions of s = log u, which the loss uses ----

    def score(self, s: Tensor) -> Tensor:
        """Return T(s) = f'(e^s)."""
        safe = _safe(s)
        return elementwise_derivative(self._f)(safe.exp()) + self.score_slope(safe) * (s - safe)

    def penalty(self, s: Tensor) -> Tensor:
        """Return F(s) = f*(T(s)) = e^s f'(e^s) − f(e^s)."""
        safe = _safe(s)
        u = safe.exp()
        return u * elementwise_derivative(self._f)(u) - self._f(u) + self.score_slope(safe) * (s.exp() - u)

    def score_slope(self, s: Tensor) -> Tensor:
        """Return dT/ds = u f''(u)."""
        u = _safe(s).exp()
        return u * elementwise_derivative(elementwise_derivative(self._f))(u)

    def penalty_slope(self, s: Tensor) -> Tensor:
        """Return dF/ds = u dT/ds."""
        return s.exp() * self.score_slope(s)

    def penalty_sum(self, s: Tensor) -> Tensor:
        """Return Σ_i F(s_i) over the last dimension."""
        return self.penalty(s).sum(-1)

    def penalty_sum_and_slope(self, s: Tensor) -> tuple[Tensor, Tensor]:
        """Return `penalty_sum(s)` and `penalty_slope(s)`; the second is a new tensor that the caller may change.

        The loss calls this for every batch, without autograd. A subclass that can compute both together overrides it.
        """
        return self.penalty_sum(s), self.penalty_slope(s)

    # ---- Functions of t = T, as in the paper ----

    def log_ratio(self, t: Tensor) -> Tensor:
        """Return the s with T(s) = t, for t inside `domain`: the inverse of the score."""
        return invert_increasing(self.score, t)

    def conjugate(self, t: Tensor) -> Tensor:
        """Return f*(t) = sup_u {ut − f(u)}, for t inside `domain`."""
        return self.penalty(self.log_ratio(t))

    def conjugate_prime(self, t: Tensor) -> Tensor:
        """Return (f*)'(t) = (f')⁻¹(t), the posterior for a score t."""
        return self.log_ratio(t).exp()

    def conjugate_second(self, t: Tensor) -> Tensor:
        """Return (f*)''(t) = 1 / f''(u) at u = (f*)'(t)."""
        s = self.log_ratio(t)
        return s.exp() / self.score_slope(s)

    def tempered(self, floor: float) -> Divergence:
        """Return this divergence with bounded slopes below `floor`; see `Tempered`."""
        return Tempered(self, floor)

    def _check_strictly_convex(self) -> None:
        grid = torch.linspace(-4, 4, 401, dtype=torch.float64)
        try:
            shape = self.f(grid.exp()).shape
            slope = self.score_slope(grid)
        except Exception as error:
            raise InputError(
                f"divergence {self.name!r}: f could not be evaluated and differentiated twice as an elementwise "
                f"function of a tensor ({type(error).__name__}: {error})."
            ) from error
        if shape != grid.shape:
            raise InputError(
                f"divergence {self.name!r}: f must be elementwise; it turned shape {tuple(grid.shape)} into "
                f"{tuple(shape)}."
            )
        bad = ~(torch.isfinite(slope) & (slope > 1e-12))
        if bad.any():
            u, value = grid[bad][0].exp().item(), slope[bad][0].item()
            if not math.isfinite(value):
                raise InputError(
                    f"divergence {self.name!r}: u·f''(u) = {value} at u = {u:.3g}; f must be finite there."
                )
            raise InputError(
                f"divergence {self.name!r}: f must be strictly convex, but u·f''(u) = {value:.3g} at u = {u:.3g}. "
                "Without strict convexity f' has no inverse and the posterior is not identified."
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ClosedForm(Divergence):
    """A divergence whose methods are all written as formulas in s = log u, each exact and stable.

    Constants follow the generator f as it is written. They never change a gradient or a posterior, but they change the
    value of the objective. f(1) = 0 holds for all divergences of postmax except GAN (f(1) = −2 log 2) and SL
    (f(1) = −log 2). The paper's f* for SL leaves out the constant −1 that Fenchel's equality gives.
    """

    def __init__(self) -> None:
        """Do nothing: closed forms are checked by the tests, and not when they are made."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(vars(self).values())))


class Tempered(Divergence):
    """A divergence whose gradients stay bounded: `base` for u ≥ floor, and KL of the same slope below.

    Reverse KL, Neyman, Jeffreys and squared Hellinger have score slopes u·f''(u) that grow without bound as u → 0. One
    confident mistake then outweighs the rest of the data. KL has a constant slope. So a divergence that continues as KL
    below the floor is again strictly convex, and the theorems and the posterior stay the same. The whole is multiplied
    by a constant, so that the slope is at most one at the floor and at u = 1. This does not change the posterior.

    Args:
        base: The divergence to temper.
        floor: The density ratio below which it continues as KL, in (0, 1).

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
        """Return the tempered f, from Fenchel's equality."""
        s = u.log()
        return u * self.score(s) - self.penalty(s)

    def score(self, s: Tensor) -> Tensor:
        """Return the base score, continued by its tangent in s."""
        return self._piecewise(s, self.base.score(self._above(s)), self._score + self._slope * (s - self._log_floor))

    def penalty(self, s: Tensor) -> Tensor:
        """Return the base penalty, continued so that its slope stays u times the score's."""
        below = self._penalty + self._slope * (s.clamp_max(self._log_floor).exp() - self.floor)
        return self._piecewise(s, self.base.penalty(self._above(s)), below)

    def score_slope(self, s: Tensor) -> Tensor:
        """Return the base slope, constant below the floor."""
        return self.base.score_slope(self._above(s)) * self._scale

    def penalty_slope(self, s: Tensor) -> Tensor:
        """Return u times the score slope."""
        below = self._slope * s.clamp_max(self._log_floor).exp()
        return self._piecewise(s, self.base.penalty_slope(self._above(s)), below)

    def log_ratio(self, t: Tensor) -> Tensor:
        """Return the inverse of the piecewise score."""
        t = t / self._scale
        above = self.base.log_ratio(t.clamp_min(self._score))
        return torch.where(t >= self._score, above, self._log_floor + (t - self._score) / self._slope)


def _safe(s: Tensor) -> Tensor:
    """Return s, limited to the range in which powers of e^s neither overflow nor vanish."""
    return s.clamp(-200.0, 200.0) if s.dtype == torch.float64 else s.clamp(-25.0, 25.0)
