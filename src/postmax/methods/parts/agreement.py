"""Rows with whose label a network agrees, and how much each of their classes counts."""

from __future__ import annotations

import torch
from torch import Tensor

# Without a bound a class with a single row would decide about a whole batch.
_LARGEST_WEIGHT = 3.0
# A class is lost if the share of its rows that agree is below this part of the share among all rows.
_LOST = 0.25
# Batch normalisation cannot use a single row, so one row counts as none.
_FEWEST = 2


def agreeing_rows(predicted: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Return a mask (N,) of the rows whose label is the class that a network predicts for them.

    A class keeps all its rows if none or very few of them agree: fewer than a quarter of what would agree if all
    classes were alike. Then the network does not know the class, which says nothing about its labels. Without them it
    would never learn the class.

    Args:
        predicted: The predicted class of each row, (N,).
        labels: The given label of each row, (N,).
        classes: K.

    Example:
        >>> agreeing_rows(torch.tensor([0, 1, 0, 0]), torch.tensor([0, 0, 1, 1]), 3)
        tensor([ True, False,  True,  True])
    """
    agrees = predicted == labels
    rows, agreeing = (torch.bincount(some, minlength=classes) for some in (labels, labels[agrees]))
    lost = (agreeing == 0) | (agreeing < _LOST * agrees.float().mean() * rows)
    chosen = agrees | lost[labels]
    return chosen if int(chosen.sum()) >= _FEWEST else torch.ones_like(chosen)


def class_weights(labels: Tensor, classes: int) -> Tensor:
    """Return a weight for each class, (K,): the mean number of rows of a class, divided by that of this class.

    The network agrees with more rows of easy classes. The weights make up for that. A class without rows has no weight,
    and does not count in the mean. No weight is above 3.

    Args:
        labels: The labels of the rows that are used, (n,).
        classes: K.

    Example:
        >>> class_weights(torch.tensor([0, 0, 0, 1]), 3)
        tensor([0.6667, 2.0000, 0.0000])
    """
    counts = torch.bincount(labels, minlength=classes).float()
    present = counts > 0
    weights = counts.sum() / present.sum().clamp_min(1) / counts.clamp_min(1)
    return torch.where(present, weights.clamp_max(_LARGEST_WEIGHT), torch.zeros_like(weights))
