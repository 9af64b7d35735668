"""Functions of the posteriors that a loss reads from logits."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.losses import Loss


def safe_log(probabilities: Tensor) -> Tensor:
    """Return the logarithm of probabilities, with a finite value and gradient where one of them is 0.

    Example:
        >>> safe_log(torch.tensor([1.0, 0.0]))
        tensor([  0.0000, -87.3365])
    """
    return (probabilities + torch.finfo(probabilities.dtype).tiny).log()


def log_posterior(loss: Loss, logits: Tensor) -> Tensor:
    """Return the logarithm of the posterior that a loss reads from logits (B, K)."""
    return safe_log(loss.posterior(logits))


def relative_entropy(first: Tensor, second: Tensor) -> Tensor:
    """Return KL(first ‖ second) of each row of two sets of distributions, (B, K) each.

    Example:
        >>> relative_entropy(torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.75]]))
        tensor([0.1438])
    """
    return (first * (safe_log(first) - safe_log(second))).sum(-1)


def entropy(probabilities: Tensor) -> Tensor:
    """Return the entropy of each row of distributions (B, K).

    Example:
        >>> entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
        tensor([0.6931, -0.0000])
    """
    return -(probabilities * safe_log(probabilities)).sum(-1)
