"""The losses of all labels, for any loss."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.losses import Loss


def losses_of_labels(loss: Loss, logits: Tensor) -> Tensor:
    """Return the loss of each row for each label, (B, K), in float64 and without a gradient.

    The loss of a distribution of labels is the mean of the losses of these labels. So its slope in the probability of a
    label is the loss of this label, up to what label smoothing adds to all of them. One backward pass gives all slopes.

    Args:
        loss: Any loss of single rows, with reduction "none".
        logits: (B, K).

    Example:
        >>> import postmax as pm
        >>> losses_of_labels(pm.losses.get("ce", reduction="none"), torch.tensor([[0.25, 0.75]]).log())
        tensor([[1.3863, 0.2877]], dtype=torch.float64)
    """
    with torch.enable_grad():
        wide = logits.detach().double()
        even = torch.full_like(wide, 1 / wide.shape[1]).requires_grad_()
        values = loss(wide, even)
        (slopes,) = torch.autograd.grad(values.sum(), even)
    shared = values.detach() - (slopes * even.detach()).sum(1)
    found: Tensor = slopes + shared[:, None]
    return found
