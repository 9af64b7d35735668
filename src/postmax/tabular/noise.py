"""The noise of a table: as simple as its labels allow, because few rows cannot tell K² numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.estimation import RowTensors, Solution
from postmax.estimation.evidence import Evidence
from postmax.estimation.likelihood import clean_posterior, explained_without_noise, fit
from postmax.estimation.unmix import undo, unmix
from postmax.extras import need
from postmax.transition import Transition

_LEVEL = 0.05
_STEPS, _WARM_STEPS = 200, 40
_START = -2.0
# Symmetric noise of (K − 1)/K leaves no information, and a matrix just below it cannot be inverted.
_HIGHEST = 0.98
_MIXED, _FULL, _UNMIXED = 0.0, 1.0, 2.0
_TINY = 1e-12
# Unmixing is not exact, so over many rows a difference of likelihoods becomes significant that has no meaning.
_TOLERATED = 0.01
_UNDOING_STEPS = 20


@dataclass(frozen=True)
class SimplestNoise:
    """Symmetric noise with one unknown rate, unless the labels say significantly more than that.

    Noise is fitted by maximum likelihood to P(label | x) = Σ_i D_i(x)·T[i, label] with D = softmax(a·s(x) + b), where
    s(x) are the logarithms of out-of-sample posteriors of the label. Twice the difference of the log-likelihoods of a
    full matrix and of symmetric noise is compared with χ² of K(K − 1) − 1 degrees of freedom, at 5 %. If it is larger,
    the full matrix is used, fitted to unmixed scores as `fpml` does (`postmax.estimation.unmix`), if in it the right
    label is the most frequent one of each class.

    If it is not, that need not mean symmetric noise: networks that know the posterior of the label well explain the
    labels as well without any noise. So the doubt of the surest rows is taken for noise, by unmixing the scores, as
    long as that explains the labels not clearly worse: not significantly, or by less than 0.01 for each label.
    Symmetric noise is tried first, and then the full matrix. Where both are clearly worse, classes overlap, and the
    rate of symmetric noise is fitted to the scores as they are.

    A symmetric matrix changes probabilities, but never which class is the most probable one. So where rows are too few
    to tell, predictions are not made worse by an estimate that is mostly chance.

    Args:
        symmetric: Whether the noise is known to be symmetric. Then no full matrix is fitted.
    """

    symmetric: bool = False

    def rows(self, evidence: Evidence) -> RowTensors:
        """Return the out-of-sample posteriors of the label, and the labels."""
        return evidence.out_of_sample, evidence.labels

    def solve(self, rows: RowTensors, num_classes: int, start: Solution | None = None) -> Solution:
        """Return the matrix. A draw of rows for the interval keeps the model of `start`."""
        posterior, labels = rows
        if start is not None:
            return self._again(posterior, labels, float(start.state[0]), start.state[1:])
        scores = posterior.clamp_min(_TINY).log()
        mixed = _fit_symmetric(scores, labels, (), _MIXED)
        best = max(_likelihood_of(mixed, scores, labels), explained_without_noise(scores, labels))
        full = self._full(posterior, labels)
        if full is not None and _full_likelihood(scores, labels) - best > 0.5 * _chi_squared(_freedom(num_classes)):
            return full
        sharper = unmix(posterior, labels).clamp_min(1e-300).log()
        clearly_worse = best - max(0.5 * _chi_squared(1), _TOLERATED * len(labels))
        unmixed = _fit_symmetric(sharper, labels, (), _UNMIXED)
        if _likelihood_of(unmixed, sharper, labels) > clearly_worse:
            return unmixed
        if full is not None and _likelihood_of_full(full, sharper, labels) > clearly_worse:
            return full
        return mixed

    def _full(self, posterior: Tensor, labels: Tensor) -> Solution | None:
        """Return a full matrix; None if the rows are too few for one, or one of its labels is mostly wrong."""
        if self.symmetric or len(labels) <= 2 * (_freedom(posterior.shape[1]) + 1):
            return None
        found = _fit_full(posterior, labels, ())
        return found if (found.matrix.diagonal() == found.matrix.amax(1)).all() else None

    def _again(self, posterior: Tensor, labels: Tensor, model: float, state: tuple[Tensor, ...]) -> Solution:
        if model == _FULL:
            return _fit_full(posterior, labels, state)
        scores = (
            posterior.clamp_min(_TINY).log() if model == _MIXED else unmix(posterior, labels).clamp_min(1e-300).log()
        )
        return _fit_symmetric(scores, labels, state, model)


def _fit_full(posterior: Tensor, labels: Tensor, start: tuple[Tensor, ...]) -> Solution:
    scores = unmix(posterior, labels).clamp_min(1e-300).log()
    found = fit(scores, labels, start)
    clean = clean_posterior(scores, found.state)
    bounds = (found.noise_rate, float((clean.argmax(1) != labels).double().mean()))
    return Solution(found.matrix, found.prior, bounds, (torch.tensor(_FULL), *found.state))


def _fit_symmetric(scores: Tensor, labels: Tensor, start: tuple[Tensor, ...], model: float) -> Solution:
    """Return symmetric noise by maximum likelihood: one rate, a temperature, and a bias for each class."""
    k, n = scores.shape[1], len(labels)
    first = start or (torch.zeros(()), torch.zeros(k), torch.tensor(_START))
    log_a, bias, odds = (part.detach().double().clone().requires_grad_() for part in first)
    steps = _WARM_STEPS if start else _STEPS
    optimiser = torch.optim.LBFGS([log_a, bias, odds], max_iter=steps, line_search_fn="strong_wolfe")

    def objective() -> Tensor:
        optimiser.zero_grad()
        value = -_symmetric_likelihood(scores, labels, log_a, bias, odds).sum() / n
        # The prior of the temperature is that of `postmax.estimation.likelihood`: it prefers clear rows.
        value = value + 0.5 * (log_a - 1) ** 2 / n
        value.backward()
        return value.detach()

    optimiser.step(objective)
    state = tuple(part.detach() for part in (log_a, bias, odds))
    rate = float(_rate(odds.detach(), k))
    clean = (state[0].exp() * scores + state[1]).softmax(1)
    matrix = Transition.symmetric(k, rate).matrix
    joint = clean * matrix.T[labels]
    prior = (joint / joint.sum(1, keepdim=True).clamp_min(1e-300)).mean(0)
    likelihood = float(_symmetric_likelihood(scores, labels, *state).sum())
    needed = likelihood - explained_without_noise(scores, labels) > 0.5 * _chi_squared(1)
    bounds = (rate if needed else 0.0, float((clean.argmax(1) != labels).double().mean()))
    return Solution(matrix, prior, bounds, (torch.tensor(model), *state))


def _rate(odds: Tensor, num_classes: int) -> Tensor:
    return odds.sigmoid() * (_HIGHEST * (num_classes - 1) / num_classes)


def _symmetric_likelihood(scores: Tensor, labels: Tensor, log_a: Tensor, bias: Tensor, odds: Tensor) -> Tensor:
    k = scores.shape[1]
    rate = _rate(odds, k)
    clean = (log_a.exp() * scores + bias).softmax(1).gather(1, labels[:, None])[:, 0]
    return ((1 - rate) * clean + rate / (k - 1) * (1 - clean)).clamp_min(1e-300).log()


def _likelihood_of(one: Solution, scores: Tensor, labels: Tensor) -> float:
    return float(_symmetric_likelihood(scores, labels, *one.state[1:]).sum())


def _full_likelihood(scores: Tensor, labels: Tensor) -> float:
    """Return the log-likelihood of the labels under the best full matrix."""
    found = fit(scores, labels)
    joint = clean_posterior(scores, found.state) * found.matrix.T[labels]
    return float(joint.sum(1).clamp_min(1e-300).log().sum())


def _likelihood_of_full(one: Solution, scores: Tensor, labels: Tensor) -> float:
    joint = clean_posterior(scores, one.state[1:]) * one.matrix.T[labels]
    return float(joint.sum(1).clamp_min(1e-300).log().sum())


def _freedom(num_classes: int) -> int:
    """Return how many numbers a full matrix has more than symmetric noise."""
    return num_classes * (num_classes - 1) - 1


def _chi_squared(freedom: int) -> float:
    """Return the number that χ² exceeds with a chance of 5 %."""
    return float(need("scipy.special", "train").chdtri(freedom, _LEVEL))


def without_noise(label_posterior: Tensor, noise: Transition | None) -> Tensor:
    """Return the posterior of the true class, float64, from that of the label; the same if there is no noise.

    It is found by twenty multiplicative steps (`postmax.estimation.unmix`). They reach nearly what the inverse of the
    matrix gives, but no class gets the probability 0.
    """
    found = label_posterior.double()
    if noise is None:
        return found
    clean = undo(found, noise.matrix, _UNDOING_STEPS)
    return clean / clean.sum(1, keepdim=True).clamp_min(1e-300)


def true_class(posterior: Tensor, labels: Tensor, noise: Transition) -> Tensor:
    """Return P(true class i | row, label j), float64 (N, K). It is proportional to P(i | row)·T[i, j].

    A label that no class can have says nothing: then it is P(true class | row).

    Args:
        posterior: P(true class | row), (N, K), by networks that did not see the row.
        labels: The labels as given, (N,).
        noise: T.

    Example:
        >>> noise = Transition([[0.8, 0.2], [0.2, 0.8]])
        >>> true_class(torch.tensor([[0.9, 0.1]]), torch.tensor([1]), noise)
        tensor([[0.6923, 0.3077]], dtype=torch.float64)
    """
    found = posterior.double()
    joint = found * noise.matrix.T[labels]
    total = joint.sum(1, keepdim=True)
    return torch.where(total > 0, joint / torch.where(total > 0, total, 1.0), found)


def label_quality(posterior: Tensor, labels: Tensor, noise: Transition | None) -> npt.NDArray[np.float64]:
    """Return the probability that each label is right, (N,), from out-of-sample posteriors of the true class.

    Where labels are taken to be right, it is the posterior of the label.

    Example:
        >>> label_quality(torch.tensor([[0.5, 0.5]]), torch.tensor([1]), Transition([[0.8, 0.2], [0.0, 1.0]])).round(2)
        array([0.83])
    """
    believed = posterior.double() if noise is None else true_class(posterior, labels, noise)
    quality: npt.NDArray[np.float64] = believed.gather(1, labels[:, None])[:, 0].clamp(0, 1).numpy()
    return quality
