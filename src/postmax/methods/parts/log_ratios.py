"""Distributions over K classes as points of a space of K − 1 dimensions, and back.

The isometric log-ratio transformation multiplies the logarithms of the probabilities by an orthonormal basis of the
directions in which they can differ. Egozcue, Pawlowsky-Glahn, Mateu-Figueras and Barceló-Vidal, Isometric logratio
transformations for compositional data analysis, 2003.
"""

from __future__ import annotations

import torch
from torch import Tensor


def log_ratio_basis(num_classes: int) -> Tensor:
    """Return the Helmert basis (K − 1, K): orthonormal rows, each of which sums to 0.

    A distribution p becomes `p.log() @ basis.T`, and a point t becomes the distribution `(t @ basis).softmax(-1)`.

    Example:
        >>> basis = log_ratio_basis(3)
        >>> basis
        tensor([[ 0.7071, -0.7071,  0.0000],
                [ 0.4082,  0.4082, -0.8165]])
        >>> p = torch.tensor([0.7, 0.2, 0.1])
        >>> (p.log() @ basis.T @ basis).softmax(-1)
        tensor([0.7000, 0.2000, 0.1000])
    """
    rows = torch.arange(1, num_classes, dtype=torch.float64)[:, None]
    columns = torch.arange(num_classes)
    entries = (columns < rows).double() - rows * (columns == rows).double()
    return (entries / (rows * (rows + 1)).sqrt()).float()
