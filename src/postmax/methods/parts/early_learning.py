"""What a network believed in earlier epochs, and a term that keeps it from forgetting that."""

from __future__ import annotations

from torch import Tensor

# The published floor under probabilities. Here it bounds the remembered targets alone, which need no gradient.
_FLOOR = 1e-4


def remember(targets: Tensor, rows: Tensor, posterior: Tensor, memory: float) -> Tensor:
    """Move the targets of some rows towards a new posterior, in place, and return them.

    The targets are an exponential moving average that starts at 0. They are never nearer to 0 or 1 than a small floor,
    so that `early_learning` stays finite.

    Args:
        targets: The targets of all rows, (N, K). They are changed.
        rows: The numbers of the rows, (B,).
        posterior: What the network believes about these rows now, (B, K).
        memory: The share of the old target that is kept, from 0 to 1.

    Returns:
        The new targets of these rows, (B, K).

    Example:
        >>> import torch
        >>> remember(torch.zeros(5, 2), torch.tensor([3]), torch.tensor([[0.75, 0.25]]), 0.6)
        tensor([[0.3000, 0.1000]])
    """
    believed = posterior.detach().clamp(_FLOOR, 1 - _FLOOR)
    new = memory * targets[rows] + (1 - memory) * believed / believed.sum(-1, keepdim=True)
    targets[rows] = new
    return new


def early_learning(targets: Tensor, posterior: Tensor) -> Tensor:
    """Return log(1 − ⟨target, posterior⟩) of each row, which is small where both agree.

    It is computed as log Σ p·(1 − t), which is the same because a posterior p sums to 1. No two large numbers are
    subtracted, and the gradient is exact everywhere. The posterior needs no floor: that of the targets is enough.

    Args:
        targets: What is remembered of each row, (B, K), from `remember`.
        posterior: What the network believes now, (B, K), with a gradient.

    Example:
        >>> import torch
        >>> early_learning(torch.tensor([[0.5, 0.25]]), torch.tensor([[0.8, 0.2]])).exp()
        tensor([0.5500])
    """
    return (posterior * (1 - targets)).sum(-1).log()
