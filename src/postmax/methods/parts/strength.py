"""How strong a loss is, beside which other terms of an objective must keep their proportion."""

from __future__ import annotations

import torch

from postmax.errors import InputError
from postmax.losses import Loss


def strength(loss: Loss, classes: int) -> float:
    """Return how strongly a loss pulls towards a label where nothing is known yet, relative to cross-entropy.

    It is the fall of the loss for each unit by which the posterior of the label rises, at the uniform posterior. For
    cross-entropy that is K. Bounded losses are much weaker: their strength falls like 1/K. A term with a published
    weight, which was chosen beside cross-entropy, overrules such a loss unless its weight is multiplied by this number.

    Args:
        loss: The loss, with reduction "none".
        classes: K.

    Returns:
        A positive number: 1 for cross-entropy. It is also 1 for a loss that has no such slope: one that is a single
        number for a batch, that mixes rows, or that does not fall towards the label.

    Example:
        >>> from postmax import losses
        >>> [round(strength(losses.get(name, reduction="none"), 10), 3) for name in ("ce", "gan-pml", "sl-pml", "mae")]
        [1.0, 0.909, 0.083, 0.1]
    """
    if loss.is_of_whole_batch or loss.mixes_rows:
        return 1.0
    uniform = torch.full((1, classes), 1 / classes, dtype=torch.float64)
    with torch.enable_grad():
        try:
            logits = loss.logits_of(uniform).requires_grad_()
        except InputError:  # equal logits are the uniform posterior of every loss
            logits = torch.zeros_like(uniform).requires_grad_()
        (fall,) = torch.autograd.grad(-loss(logits, torch.tensor([0])).sum(), logits)
        (rise,) = torch.autograd.grad(loss.posterior(logits)[0, 0], logits)
    found = float(fall[0, 0] / rise[0, 0]) / classes
    return found if 0 < found < float("inf") else 1.0
