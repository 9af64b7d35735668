"""VolMinNet's form of a transition matrix: free parameters of matrices whose diagonal is the largest of each row."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# With features that carry no information the volume goes to zero, where its logarithm has no gradient.
_LEAST_VOLUME = 1e-6


def initial_parameters(num_classes: int) -> Tensor:
    """Return the published start (−2 for ten classes, −4.5 for a hundred): a label is kept about half of the time."""
    share = min(0.5, 1.07 / (num_classes - 1))
    return torch.full((num_classes, num_classes), math.log(share / (1 - share)))


def matrix_of(off: Tensor) -> Tensor:
    """Return rows of I + σ(off) without its diagonal, normalised.

    Example:
        >>> matrix_of(torch.zeros(2, 2))
        tensor([[0.6667, 0.3333],
                [0.3333, 0.6667]])
    """
    eye = torch.eye(len(off), dtype=off.dtype, device=off.device)
    weights = eye + off.sigmoid() * (1 - eye)
    return weights / weights.sum(1, keepdim=True)


def parameters_of(matrix: Tensor) -> Tensor:
    """Return the parameters of a matrix whose diagonal is the largest entry of each row."""
    ratio = (matrix / matrix.diagonal()[:, None]).clamp(1e-9, 1 - 1e-9)
    return (ratio / (1 - ratio)).log()


def log_volume(matrix: Tensor) -> Tensor:
    """Return log|det T|, kept finite by a tiny addition to the diagonal.

    Example:
        >>> log_volume(torch.diag(torch.tensor([0.5, 0.5]))).exp()
        tensor(0.2500)
    """
    least = _LEAST_VOLUME * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    volume: Tensor = torch.linalg.slogdet(matrix + least).logabsdet
    return volume
