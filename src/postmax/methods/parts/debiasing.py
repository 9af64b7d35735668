"""Take a preference for some classes out of posteriors, and out of training.

Wang et al., Debiased learning from naturally imbalanced pseudo-labels, CVPR 2022; used by ProMix.
"""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.losses import Loss
from postmax.methods.parts.posteriors import safe_log

# The share of a uniform distribution that is mixed in: the logits of a posterior of exactly 0 or 1 would be infinite.
_UNSURE = 1e-6


def reweighted(posterior: Tensor, prior: Tensor, power: float) -> Tensor:
    """Return p·π^power divided by its sum: posteriors (B, K) for which the prior (K,) of the classes is another one.

    With a power of −1 classes lose the preference that π describes, with a power of 1 they get it.

    Example:
        >>> reweighted(torch.tensor([[0.5, 0.5]]), torch.tensor([0.8, 0.2]), -1)
        tensor([[0.2000, 0.8000]])
    """
    return (safe_log(posterior) + power * safe_log(prior)).softmax(-1)


@torch.no_grad()
def margins(loss: Loss, logits: Tensor, prior: Tensor, power: float) -> Tensor:
    """Return what must be added to logits (B, K) so that their posterior p becomes p·π^power, divided by its sum.

    A network that is trained with these margins learns what is left to explain once the prior π is known. So its own
    logits do not repeat the preference that π describes. For cross-entropy the margins are power·log π, up to one
    number for all classes, which makes no difference. For other losses they are the difference between the logits of
    the two posteriors, so that a uniform prior changes nothing. They carry no gradient.

    Args:
        loss: The loss, which knows what its logits mean.
        logits: The logits of a network.
        prior: The prior of the classes, (K,).
        power: How much of the prior counts.

    Raises:
        InputError: If the loss cannot express every posterior.

    Example:
        >>> from postmax import losses
        >>> found = margins(losses.get("ce"), torch.tensor([[1.0, 2.0]]), torch.tensor([0.8, 0.2]), 1)
        >>> round(float(found[0, 0] - found[0, 1]), 4)  # log(0.8 / 0.2)
        1.3863
    """
    # In 64 bits, because the difference between a posterior and 1 decides about the logits of some losses.
    posterior, prior = _less_sure(loss.posterior(logits).double()), _less_sure(prior.double())
    return (loss.logits_of(reweighted(posterior, prior, power)) - loss.logits_of(posterior)).to(logits)


@torch.no_grad()
def follow_prior(prior: Tensor, posterior: Tensor, momentum: float) -> None:
    """Move a prior (K,) towards the mean of posteriors (B, K), in place. Without rows it stays.

    Example:
        >>> prior = torch.tensor([0.5, 0.5])
        >>> follow_prior(prior, torch.tensor([[1.0, 0.0], [0.8, 0.2]]), 0.75)
        >>> prior
        tensor([0.6000, 0.4000])
    """
    if len(posterior):
        prior.lerp_(posterior.mean(0).to(prior), 1 - momentum)


def _less_sure(probabilities: Tensor) -> Tensor:
    return (1 - _UNSURE) * probabilities + _UNSURE / probabilities.shape[-1]
