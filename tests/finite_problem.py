"""A classification problem on finitely many points, where every expectation is a finite sum."""

from dataclasses import dataclass

import torch
from hypothesis import strategies as st

import postmax as pm

DIVERGENCES = [*(n for n in pm.divergences.names() if n != "alpha"), "alpha:1.5", "alpha:0.7", "sl:2"]


@dataclass(frozen=True)
class FiniteProblem:
    """p(x), the clean posterior p(y|x), and the noise."""

    weights: torch.Tensor  # (X,)
    posterior: torch.Tensor  # (X, K)
    noise: pm.Transition

    @property
    def noisy_posterior(self):
        return self.posterior @ self.noise.matrix

    def objective(self, divergence, s, labels):
        """J_f(T) for T = f'(e^s) when the label given x is distributed as `labels`; the library's loss with a minus."""
        rows = pm.functional.fpml_loss(s, labels, divergence, "exp", reduction="none")
        return -(self.weights * rows).sum()

    def expect(self, rows):
        return (self.weights * rows).sum()


def minimiser(loss, shape, low=-30.0, high=30.0):
    """The logits that minimise a sum of losses of single logits, by bisection on the sign of the gradient."""
    low, high = (torch.full(shape, v, dtype=torch.float64) for v in (low, high))
    for _ in range(56):
        z = (0.5 * (low + high)).requires_grad_()
        (gradient,) = torch.autograd.grad(loss(z), z)
        low, high = torch.where(gradient < 0, z, low).detach(), torch.where(gradient < 0, high, z).detach()
    return 0.5 * (low + high)


def joint_minimiser(loss, shape):
    """The logits that minimise a loss in which they interact (softmax), by L-BFGS."""
    z = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [z], max_iter=4000, tolerance_grad=1e-13, tolerance_change=0, history_size=30, line_search_fn="strong_wolfe"
    )

    def closure():
        optimiser.zero_grad()
        value = loss(z)
        value.backward()
        return value

    optimiser.step(closure)
    return z.detach()


def probabilities(size, smallest=0.05):
    """Probability vectors bounded away from zero."""
    values = st.lists(st.floats(smallest, 1.0), min_size=size, max_size=size)
    return values.map(lambda v: torch.tensor(v, dtype=torch.float64) / sum(v))


@st.composite
def rates(draw, classes):
    """Rates e of uniform off-diagonal noise with Σe < 0.9."""
    e = torch.tensor(draw(st.lists(st.floats(0.0, 1.0), min_size=classes, max_size=classes)), dtype=torch.float64)
    return e * draw(st.floats(0.0, 0.9)) / e.sum().clamp_min(1e-9)


@st.composite
def invertible(draw, classes):
    """Any transition matrix that keeps more than it takes, so that it is safely invertible."""
    keep = draw(st.floats(0.55, 1.0))
    rows = torch.stack([draw(probabilities(classes)) for _ in range(classes)])
    return pm.Transition(keep * torch.eye(classes, dtype=torch.float64) + (1 - keep) * rows)


@st.composite
def problems(draw, noise, points=3, min_classes=2, max_classes=5):
    """A finite problem; `noise(classes)` is the strategy for its transition matrix."""
    classes = draw(st.integers(min_classes, max_classes))
    posterior = torch.stack([draw(probabilities(classes)) for _ in range(points)])
    return FiniteProblem(draw(probabilities(points)), posterior, draw(noise(classes)))


def uniform_noise(classes):
    return rates(classes).map(pm.Transition.uniform_off_diagonal)


def binary_noise(_):
    return st.tuples(st.floats(0, 0.45), st.floats(0, 0.5)).map(lambda e: pm.Transition.binary(*e))


def symmetric_noise(low, high):
    """Symmetric noise with η a fraction in [low, high] of its threshold (K−1)/K."""
    return lambda k: st.floats(low, high).map(lambda r: pm.Transition.symmetric(k, r * (k - 1) / k))
