"""Counts of labels, and the matrices and frequencies that follow from them."""

from __future__ import annotations

import torch
from torch import Tensor


def count_pairs(first: Tensor, second: Tensor, num_classes: int) -> Tensor:
    """Return (K, K) float64, the number of times that (i, j) occurs."""
    pairs = torch.bincount(first * num_classes + second, minlength=num_classes**2)
    return pairs.reshape(num_classes, num_classes).double()


def normalise_rows(weights: Tensor) -> Tensor:
    """Return the rows divided by their sums. A row without weight becomes a row of the identity matrix."""
    total = weights.sum(1, keepdim=True)
    keeps = torch.eye(len(weights), dtype=weights.dtype)
    # Smaller sums are rounding errors, and dividing by them would not give probabilities.
    dust = 1e-250
    return torch.where(total > dust, weights / total.clamp_min(dust), keeps)


def keep_unseen(matrix: Tensor, labels: Tensor) -> Tensor:
    """Return the matrix with a row of the identity for each class that does not occur among `labels`."""
    unseen = torch.bincount(labels.flatten(), minlength=len(matrix)) == 0
    return torch.where(unseen[:, None], torch.eye(len(matrix), dtype=matrix.dtype), matrix)


def prior_behind(matrix: Tensor, labels: Tensor, steps: int = 500) -> Tensor:
    """Return the frequencies of the true classes that best explain those of the noisy labels (maximum likelihood).

    The inverse of an ill-conditioned matrix could give negative frequencies. These iterations cannot.
    """
    k = len(matrix)
    seen = torch.bincount(labels, minlength=k).double() / len(labels)
    prior = torch.full((k,), 1 / k, dtype=torch.float64)
    for _ in range(steps):
        prior = prior * (matrix @ (seen / (prior @ matrix).clamp_min(1e-300)))
        if not prior.sum() > 0:
            return seen  # under this matrix none of these labels is possible
        prior = prior / prior.sum()
    return prior
