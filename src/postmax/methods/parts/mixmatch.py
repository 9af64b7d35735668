"""MixMatch: labelled and unlabelled rows are trained together, as mixtures.

Berthelot et al., MixMatch: A holistic approach to semi-supervised learning, NeurIPS 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from postmax.data import mixup
from postmax.losses import Loss
from postmax.methods.parts.targets import as_labels, sharpen

# Published weights of the squared error are for ten classes.
_PUBLISHED_CLASSES = 10


class Aim(NamedTuple):
    """Several views of some rows, and what a network shall answer for each of these views.

    Attributes:
        views: The inputs (B, …) of each view.
        targets: The distribution of the true class of each row, (B, K).
    """

    views: Sequence[Tensor]
    targets: Tensor


class MixMatch(NamedTuple):
    """What a network makes of mixtures of labelled and unlabelled rows.

    Attributes:
        labelled: The loss of each mixture whose larger part is a labelled view.
        unlabelled: The squared error of the posterior, a mean over the other mixtures and the classes. It is 0 if there
            are no unlabelled rows.
        posterior: The posterior of all mixtures, those of labelled views first.
        targets: The mixed label distributions of all mixtures, in the same order.
    """

    labelled: Tensor
    unlabelled: Tensor
    posterior: Tensor
    targets: Tensor


def mean_posterior(loss: Loss, logits: Sequence[Tensor]) -> Tensor:
    """Return the mean of the posteriors (B, K) that a loss reads from the logits of several views.

    Example:
        >>> from postmax import losses
        >>> mean_posterior(losses.get("ce"), [torch.zeros(1, 2), torch.tensor([[20.0, 0.0]])])
        tensor([[0.7500, 0.2500]])
    """
    return torch.stack([loss.posterior(outputs) for outputs in logits]).mean(0)


def guess(loss: Loss, logits: Sequence[Tensor], temperature: float) -> Tensor:
    """Return targets (B, K) for rows without labels: the mean posterior of their views, sharpened.

    Example:
        >>> from postmax import losses
        >>> guess(losses.get("ce"), [torch.zeros(1, 2), torch.tensor([[20.0, 0.0]])], 0.5)
        tensor([[0.9000, 0.1000]])
    """
    return sharpen(mean_posterior(loss, logits), temperature)


def mix_and_match(
    loss: Loss,
    network: nn.Module,
    labelled: Aim,
    unlabelled: Aim | None,
    alpha: float,
    generator: torch.Generator,
    *,
    per_row: bool = False,
) -> MixMatch:
    """Mix all views of labelled and unlabelled rows with each other, and judge a network on the mixtures.

    Args:
        loss: The loss of the run, with reduction "none".
        network: What is trained.
        labelled: The labelled rows.
        unlabelled: The unlabelled rows, with guessed targets; None if there are none.
        alpha: The parameter of mixup's Beta distribution.
        generator: The source of random numbers.
        per_row: Whether each mixture has its own λ, as in MixMatch, or all have the same, as in DivideMix.
    """
    aims = [labelled] if unlabelled is None else [labelled, unlabelled]
    inputs = torch.cat([view for aim in aims for view in aim.views])
    wanted = torch.cat([aim.targets for aim in aims for _ in aim.views])
    mixed = mixup(inputs, wanted, alpha, generator, per_sample=per_row, at_least_half=True)
    logits = network(mixed.inputs)
    first = len(labelled.views) * len(labelled.targets)
    posterior = loss.posterior(logits)
    missed = posterior.new_zeros(())
    if unlabelled is not None:
        missed = (posterior[first:] - mixed.targets[first:]).square().mean()
    labelled_losses = loss(logits[:first], as_labels(loss, mixed.targets[:first]))
    return MixMatch(labelled_losses, missed, posterior, mixed.targets)


def scaled_weight(weight: float, classes: int) -> float:
    """Return the weight of the squared error for K classes that is as strong as a published one for ten classes.

    The squared error is a mean over classes, and two distributions differ by at most 2/K in it. So a weight must grow
    with K to keep its strength.

    Example:
        >>> scaled_weight(25, 10), scaled_weight(25, 100), scaled_weight(25, 2)
        (25.0, 250.0, 5.0)
    """
    return weight * classes / _PUBLISHED_CLASSES


def one_sidedness(posterior: Tensor) -> Tensor:
    """Return KL(uniform ‖ mean posterior) of a batch of posteriors (B, K), which is 0 if no class is preferred.

    A network that is trained on its own guesses may end by calling all rows one class. This term keeps it from that.

    Example:
        >>> one_sidedness(torch.tensor([[1.0, 0.0], [0.0, 1.0]])), one_sidedness(torch.tensor([[0.75, 0.25]]))
        (tensor(0.), tensor(0.1438))
    """
    mean = posterior.mean(0).clamp_min(torch.finfo(posterior.dtype).tiny)  # a mean of exactly 0 has no logarithm
    return -mean.log().mean() - math.log(posterior.shape[1])
