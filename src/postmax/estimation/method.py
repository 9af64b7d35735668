"""What an estimator of the transition matrix is."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from postmax.estimation.evidence import Evidence

Rows = tuple[Tensor, ...]


class Solution(NamedTuple):
    """A matrix with the frequencies of the true classes.

    `bounds` are the noise rates if no doubtful row, and if every doubtful row, were mislabelled, where a method can
    tell; see `postmax.estimation.likelihood`. `state` is whatever else a method needs to start again from here.
    """

    matrix: Tensor
    prior: Tensor
    bounds: tuple[float, float] | None = None
    state: tuple[Tensor, ...] = ()

    @property
    def noise_rate(self) -> float:
        """The share of wrong labels."""
        return float((self.prior * (1 - self.matrix.diagonal())).sum())


class Method(Protocol):
    """An estimator in two steps, so that the second can be repeated on resampled rows.

    Everything expensive (networks, neighbours) happens once in `rows`; `solve` turns rows into a matrix.
    """

    def rows(self, evidence: Evidence) -> Rows:
        """Tensors with one entry for each row of the data."""
        ...

    def solve(self, rows: Rows, num_classes: int, start: Solution | None = None) -> Solution:
        """The matrix these rows speak for; `start` is the solution of nearly the same rows."""
        ...


def count_pairs(first: Tensor, second: Tensor, num_classes: int) -> Tensor:
    """(K, K) float64: how often (i, j) occurs."""
    pairs = torch.bincount(first * num_classes + second, minlength=num_classes**2)
    return pairs.reshape(num_classes, num_classes).double()


def normalise_rows(weights: Tensor) -> Tensor:
    """Rows divided by their sums; a row without weight becomes "keeps its label"."""
    total = weights.sum(1, keepdim=True)
    keeps = torch.eye(len(weights), dtype=weights.dtype)
    # Below this a row is rounding dust, and dividing by its sum would not give probabilities.
    dust = 1e-250
    return torch.where(total > dust, weights / total.clamp_min(dust), keeps)


def keep_unseen(matrix: Tensor, labels: Tensor) -> Tensor:
    """The matrix with "keeps its label" for each class that none of `labels` names: nothing is known about it."""
    unseen = torch.bincount(labels.flatten(), minlength=len(matrix)) == 0
    return torch.where(unseen[:, None], torch.eye(len(matrix), dtype=matrix.dtype), matrix)


def prior_behind(matrix: Tensor, labels: Tensor, steps: int = 500) -> Tensor:
    """The frequencies of the true classes that best explain those of the noisy labels (maximum likelihood).

    Inverting the matrix would leave the simplex when it is ill-conditioned; these iterations cannot.
    """
    k = len(matrix)
    seen = torch.bincount(labels, minlength=k).double() / len(labels)
    prior = torch.full((k,), 1 / k, dtype=torch.float64)
    for _ in range(steps):
        prior = prior * (matrix @ (seen / (prior @ matrix).clamp_min(1e-300)))
        if not prior.sum() > 0:
            return seen  # the matrix does not allow any of these labels
        prior = prior / prior.sum()
    return prior
