"""Label distributions that methods train on in place of the given labels."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from postmax.losses import Loss


def one_hot(labels: Tensor, num_classes: int) -> Tensor:
    """Return labels (B,) as distributions (B, K), in float32.

    Example:
        >>> import torch
        >>> one_hot(torch.tensor([1, 0]), 2)
        tensor([[0., 1.],
                [1., 0.]])
    """
    return F.one_hot(labels, num_classes).float()


def as_labels(loss: Loss, true_class: Tensor) -> Tensor:
    """Return the distributions of the labels (B, K) that rows have whose true class has the given distributions (B, K).

    A loss that removes noise must be given labels with noise. If a method has cleaned labels, such a loss would remove
    the noise a second time. With the noise that it expects, it becomes what it is without noise. For other losses
    nothing changes.

    Example:
        >>> import torch, postmax as pm
        >>> loss = pm.FPMLLoss("sl", transition=pm.Transition.binary(0.1, 0.3), correction="forward")
        >>> as_labels(loss, torch.tensor([[1.0, 0.0]]))
        tensor([[0.7000, 0.3000]])
    """
    return true_class if loss.transition is None else loss.transition.corrupt_posterior(true_class)


def sharpen(probabilities: Tensor, temperature: float) -> Tensor:
    """Return p^(1/T) divided by its sum, over the last dimension. Temperatures below 1 make large entries larger.

    Example:
        >>> import torch
        >>> sharpen(torch.tensor([0.6, 0.2, 0.2]), 0.5)
        tensor([0.8182, 0.0909, 0.0909])
    """
    # The logarithm keeps small probabilities from underflowing before they are divided by their sum.
    return (probabilities.log() / temperature).softmax(-1)
