"""Counts of labels, and the matrices and frequencies that follow from them."""

from __future__ import annotations

import torch
from torch import Tensor


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
