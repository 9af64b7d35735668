"""A posterior of the true class that is neither too sure nor too unsure, judged by labels whose noise is known."""

from __future__ import annotations

import torch
from torch import Tensor

_STEPS, _TINY = 60, 1e-12


def calibrated(posterior: Tensor, labels: Tensor, matrix: Tensor) -> Tensor:
    """Return softmax(a·log D + b) for the a and b that best explain the labels as Σ_i D_i(x)·T[i, label].

    Removing noise from a posterior leaves it too soft, and some models are too sure of themselves. That does not change
    which rows are doubted most, but it does change how many of them are expected to be wrong. log a and b have a
    standard normal prior, so that few rows change little.

    Args:
        posterior: D, P(true class | x) by a model that did not see the row, float64 (N, K).
        labels: The labels as given, (N,).
        matrix: The transition matrix T, float64 (K, K).

    Example:
        >>> soft = torch.tensor([[0.6, 0.4], [0.4, 0.6]], dtype=torch.float64).repeat(200, 1)
        >>> found = calibrated(soft, torch.tensor([0, 1]).repeat(200), torch.eye(2, dtype=torch.float64))
        >>> bool(found[0, 0] > 0.9)
        True
    """
    scores = posterior.clamp_min(_TINY).log()
    log_a = torch.zeros((), dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(posterior.shape[1], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([log_a, bias], max_iter=_STEPS, line_search_fn="strong_wolfe")
    ways = matrix.T[labels]

    def clean() -> Tensor:
        return (log_a.exp() * scores + bias).softmax(1)

    def objective() -> Tensor:
        optimiser.zero_grad()
        likelihood = (clean() * ways).sum(1).clamp_min(1e-300).log().sum()
        value = (0.5 * (log_a**2 + (bias**2).sum()) - likelihood) / len(labels)
        value.backward()
        return value.detach()

    optimiser.step(objective)
    return clean().detach()
