"""Find the rows of an estimated matrix that are not reliable, and say why."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.estimation.estimator import Solution

_FEW_ROWS = 10
_WIDE = 0.5


def unidentified(
    solution: Solution, interval: tuple[Tensor, Tensor], labels: Tensor, classes: tuple[str | int, ...]
) -> dict[str | int, str]:
    """Return a reason for each class whose row of the matrix is not reliable."""
    n, k = len(labels), len(classes)
    label_count = torch.bincount(labels, minlength=k).tolist()
    lower, upper = (end.diagonal().tolist() for end in interval)
    kept = solution.matrix.diagonal().tolist()
    favourite = solution.matrix.argmax(1).tolist()
    expected = (solution.prior * n).tolist()
    reasons: dict[str | int, str] = {}
    for i, name in enumerate(classes):
        if label_count[i] == 0:
            reasons[name] = "no row has this label"
        elif expected[i] < _FEW_ROWS:
            reasons[name] = f"only about {expected[i]:.0f} rows are of this class"
        elif upper[i] - lower[i] > _WIDE:
            reasons[name] = (
                f"the share of its labels that are right may be anything from {lower[i]:.0%} to {upper[i]:.0%}"
            )
        elif favourite[i] != i:
            reasons[name] = (
                f"it seems to be labelled {classes[favourite[i]]!r} more often ({solution.matrix[i].max():.0%}) than "
                f"itself ({kept[i]:.0%}); the two may be swapped"
            )
    return reasons
