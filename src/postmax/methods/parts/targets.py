"""Label distributions that methods train on in place of the given labels."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def one_hot(labels: Tensor, num_classes: int) -> Tensor:
    """Return labels (B,) as distributions (B, K), in float32.

    Example:
        >>> import torch
        >>> one_hot(torch.tensor([1, 0]), 2)
        tensor([[0., 1.],
                [1., 0.]])
    """
    return F.one_hot(labels, num_classes).float()


def sharpen(probabilities: Tensor, temperature: float) -> Tensor:
    """Return p^(1/T) divided by its sum, over the last dimension. Temperatures below 1 make large entries larger.

    Example:
        >>> import torch
        >>> sharpen(torch.tensor([0.6, 0.2, 0.2]), 0.5)
        tensor([0.8182, 0.0909, 0.0909])
    """
    # The logarithm keeps small probabilities from underflowing before they are divided by their sum.
    return (probabilities.log() / temperature).softmax(-1)
