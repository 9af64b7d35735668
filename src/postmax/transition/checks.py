"""Checks of the numbers that describe label noise: matrices, numbers of classes, rates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.errors import InputError

Matrix = Tensor | npt.NDArray[np.floating] | Sequence[Sequence[float]]

_ROW_SUM_TOLERANCE = 1e-6


def checked_matrix(matrix: Matrix) -> Tensor:
    """Return a K×K row-stochastic matrix in float64, on the CPU, with rows that sum to one exactly.

    Raises:
        InputError: If the matrix is not square with K ≥ 2, not finite, has negative entries, or has rows that do not
            sum to one within 1e-6. The message names the row.
    """
    try:
        p = torch.as_tensor(matrix, dtype=torch.float64).detach().cpu().clone()
    except (TypeError, ValueError) as error:
        raise InputError(f"a transition matrix is a K×K array of probabilities: {error}.") from error
    if p.ndim != 2 or p.shape[0] != p.shape[1]:
        raise InputError(f"a transition matrix is square, K×K; got shape {tuple(p.shape)}.")
    checked_class_count(p.shape[0])
    if not torch.isfinite(p).all():
        i, j = (~torch.isfinite(p)).nonzero()[0].tolist()
        raise InputError(f"the transition matrix has {p[i, j].item()} at row {i}, column {j}.")
    if (p < -_ROW_SUM_TOLERANCE).any():
        i, j = (p < -_ROW_SUM_TOLERANCE).nonzero()[0].tolist()
        raise InputError(
            f"the transition matrix has the negative entry {p[i, j].item():.4g} at row {i}, column {j}. "
            "Entries are probabilities."
        )
    excess = (p.sum(1) - 1).abs()
    if (excess > _ROW_SUM_TOLERANCE).any():
        i = int(excess.argmax())
        columns_sum_to_one = bool(((p.sum(0) - 1).abs() <= _ROW_SUM_TOLERANCE).all())
        hint = " Its columns do: pass the transpose." if columns_sum_to_one else ""
        raise InputError(
            f"row {i} of the transition matrix sums to {p[i].sum().item():.6g}, not to 1. Row i holds "
            f"P(noisy label | true label = i).{hint}"
        )
    p = p.clamp_min(0)
    return p / p.sum(1, keepdim=True)


def checked_class_count(num_classes: int) -> int:
    """Return the number of classes if it is at least two.

    Raises:
        InputError: If it is smaller.
    """
    if num_classes < 2:
        raise InputError(f"label noise needs at least two classes, got {num_classes}.")
    return int(num_classes)


def checked_rate(name: str, value: float) -> float:
    """Return the value if it is a probability.

    Raises:
        InputError: If it is outside [0, 1]. The message calls the value `name`.
    """
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise InputError(f"{name} is a probability and must lie in [0, 1], got {value}.")
    return float(value)
