"""Contrastive learning: two views of a row must have similar projections, and views of other rows must not."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FEWEST_ROWS = 2
"""A single row has no other row to differ from, and batch normalisation cannot use it."""

# A projection that is shorter than this counts as short. Divided by its own length, it would have a huge gradient.
_SHORT = 1e-4


def directions(projections: Tensor) -> Tensor:
    """Return projections (B, d) divided by their lengths, in float32.

    Example:
        >>> directions(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 0.0000]])
    """
    return F.normalize(projections.float(), dim=-1, eps=_SHORT)


def info_nce(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """Return the contrastive loss of two views of the same rows (InfoNCE, also called NT-Xent).

    Each of the 2B projections has to find the other view of its row among all the other projections. Its loss is the
    cross-entropy of the softmax over their cosine similarities, divided by the temperature.

    Args:
        first: The projections of one view, (B, d).
        second: The projections of the other view, (B, d).
        temperature: Small values make the nearest of the other rows count most.

    Returns:
        The mean over all projections, a scalar. For a single row it is 0.

    Example:
        >>> first = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> info_nce(first, first, 0.5)  # similarities 1 with the same row, 0 with the other: -log(e² / (e² + 2))
        tensor(0.2395)
    """
    rows = len(first)
    both = directions(torch.cat([first, second]))
    itself = torch.eye(2 * rows, dtype=torch.bool, device=both.device)
    similarities = (both @ both.T / temperature).masked_fill(itself, -torch.inf)
    return F.cross_entropy(similarities, torch.arange(2 * rows, device=both.device).roll(rows))


def head(inputs: int, hidden: int, outputs: int) -> nn.Module:
    """Return a projection head, for `Setup.module`: one hidden layer with batch normalisation.

    Example:
        >>> head(8, 16, 4)(torch.zeros(3, 8)).shape
        torch.Size([3, 4])
    """
    return nn.Sequential(nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, outputs))
