"""How strongly a loss pulls, compared with cross-entropy, so that published weights suit other losses too."""

from __future__ import annotations

import torch

from postmax.errors import InputError
from postmax.losses import Loss
from postmax.methods.parts.posteriors import log_posterior


def pull(loss: Loss, num_classes: int) -> float:
    """Return how strongly a loss moves a uniform posterior, as a multiple of what −log p of the label does.

    Methods that add a term to a loss were published with weights for cross-entropy. A loss with a smaller gradient
    would be drowned by such a term; with the weight times this number the balance is the published one. It is 1 for
    cross-entropy. The gradient of the loss is projected on that of −log p, where p is the posterior of the loss.

    Args:
        loss: A loss with reduction "none".
        num_classes: K.

    Returns:
        A positive number. It is 1 where the loss has no gradient towards the label at a uniform posterior, where it is
        one number for a whole batch, and where it mixes rows.

    Example:
        >>> from postmax import losses
        >>> [round(pull(losses.get(name, reduction="none"), 10), 2) for name in ("ce", "gce", "sl-pml", "gan-pml")]
        [1.0, 0.2, 0.08, 0.91]
    """
    if loss.is_of_whole_batch or loss.mixes_rows:
        return 1.0
    uniform = torch.full((1, num_classes), 1 / num_classes)
    try:
        start = loss.logits_of(uniform)
    except InputError:  # the loss cannot express every posterior, but equal logits are a uniform one
        start = torch.zeros_like(uniform)
    found: list[torch.Tensor] = []
    with torch.enable_grad():
        for of_label in (lambda z: loss(z, torch.tensor([0])).sum(), lambda z: -log_posterior(loss, z)[0, 0]):
            logits = start.detach().clone().requires_grad_()
            found += torch.autograd.grad(of_label(logits), logits)
    mine, reference = found
    ratio = float((mine * reference).sum() / reference.square().sum())
    return ratio if 0 < ratio < float("inf") else 1.0
