"""Losses of noisy labels that are corrected by a transition matrix, for any loss.

T[i, j] is the probability that a row of the true class i has the label j. The posterior p of a corrected network is
that of the true class, so that pT is the posterior of the label.
"""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.losses import Loss
from postmax.methods.method import Setup
from postmax.transition.full_precision import full_product

# Logarithms of 0 and 1 − 1 have no gradient. In float64 this distance from 0 and 1 is enough, and it changes nothing
# for a label of a probability above it.
_MARGIN = 1e-12


def refuse_known_noise(method: str, loss: Loss) -> None:
    """Check that a loss does not remove noise itself, for methods that remove it.

    Raises:
        InputError: If it does: the noise would be removed twice.
    """
    if loss.complementary:
        raise InputError(
            f"the method {method} needs labels that a row may have, and this loss takes a label for a class that the "
            "row does not have: choose an ordinary loss such as ce, or method=standard."
        )
    if loss.transition is not None:
        raise InputError(
            f"the method {method} corrects the loss for the noise of the labels, and this loss is corrected already: "
            "choose a loss without a correction, such as ce or sl-pml."
        )


def refuse_mixed_rows(method: str, loss: Loss) -> None:
    """Check that the loss of a row is a matter of this row alone, for methods that weigh rows or labels.

    Raises:
        InputError: If it depends on other rows of the batch.
    """
    if loss.mixes_rows or loss.is_of_whole_batch:
        raise InputError(
            f"the method {method} weighs the losses of single labels, and this loss compares the rows of a batch with "
            "each other: choose another loss."
        )


def refuse_partial_posterior(setup: Setup) -> None:
    """Check that the loss of the run can express every posterior, for methods that hand it changed posteriors.

    Raises:
        InputError: If it cannot.
    """
    classes = setup.train.num_classes
    setup.loss.logits_of(torch.full((1, classes), 1 / classes))


def true_posterior(loss: Loss, logits: Tensor) -> Tensor:
    """Return the posterior that a loss reads from logits (B, K), in float64, in which small probabilities survive."""
    return loss.posterior(logits.double())


def inside(posterior: Tensor, margin: float = _MARGIN) -> Tensor:
    """Return posteriors (B, K) in float64, moved a little towards equal ones, so that no entry is 0 or 1.

    Args:
        posterior: (B, K).
        margin: The share of equal probabilities in the result. By default it is tiny.

    Example:
        >>> inside(torch.tensor([[1.0, 0.0]], dtype=torch.float64)).log().isfinite().all()
        tensor(True)
    """
    return (1 - margin) * posterior + margin / posterior.shape[-1]


def forward_losses(loss: Loss, logits: Tensor, labels: Tensor, matrix: Tensor) -> Tensor:
    """Return the loss of each row, (B,), for the posterior of the label: that of the true class, sent through T.

    For cross-entropy this is −log (pT)_y.

    Args:
        loss: Any loss that can express every posterior (`Loss.logits_of`), with reduction "none".
        logits: (B, K) of a network whose posterior is that of the true class.
        labels: The noisy labels, (B,).
        matrix: T, (K, K).

    Example:
        >>> import postmax as pm
        >>> matrix = torch.tensor([[0.8, 0.2], [0.4, 0.6]])
        >>> forward_losses(pm.losses.get("ce", reduction="none"), torch.zeros(1, 2), torch.tensor([0]), matrix).exp()
        tensor([1.6667])
    """
    mixed = full_product(true_posterior(loss, logits), matrix)
    return losses_of_posterior(loss, mixed, labels, _MARGIN).to(logits.dtype)


def losses_of_posterior(loss: Loss, posterior: Tensor, labels: Tensor, margin: float) -> Tensor:
    """Return the loss of each row, (B,), for a posterior into which a little of a uniform distribution is mixed.

    With it no probability is 0, so the loss is bounded. For cross-entropy it is −log((1 − m)·p_y + m/K).

    Args:
        loss: Any loss that can express every posterior (`Loss.logits_of`), with reduction "none".
        posterior: (B, K). It should be in float64, in which small probabilities survive.
        labels: (B,).
        margin: The share m of the uniform distribution, above 0.

    Example:
        >>> import postmax as pm
        >>> posterior = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
        >>> losses_of_posterior(pm.losses.get("ce", reduction="none"), posterior, torch.tensor([1]), 0.2).exp()
        tensor([10.0000], dtype=torch.float64)
    """
    losses: Tensor = loss(loss.logits_of(inside(posterior, margin)), labels)
    return losses


def backward_losses(loss: Loss, logits: Tensor, labels: Tensor, inverse: Tensor, floor: float = 0.0) -> Tensor:
    """Return Σ_j T⁻¹[y, j]·loss_j of each row, (B,), whose mean over noisy labels y is the loss of the true one.

    A loss of a distribution of labels is the mean of the losses of these labels. So the sum over all classes takes two
    evaluations: one of the positive weights and one of the negative ones.

    Args:
        loss: Any loss of single rows, with reduction "none".
        logits: (B, K).
        labels: The noisy labels, (B,).
        inverse: T⁻¹, (K, K). Its rows sum to one.
        floor: The probability below which a class with a negative weight is not made less probable. Without a floor an
            unbounded loss has no minimum. If it is above 0, the loss must be able to express every posterior.

    Example:
        >>> import postmax as pm
        >>> import math
        >>> inverse = torch.tensor([[0.75, 0.25], [0.25, 0.75]]).inverse()
        >>> logits = torch.tensor([[0.8, 0.2]]).log()
        >>> backward_losses(pm.losses.get("ce", reduction="none"), logits, torch.tensor([0]), inverse)
        tensor([-0.4700])
        >>> round(1.5 * -math.log(0.8) - 0.5 * -math.log(0.2), 4)
        -0.47
    """
    weights = inverse.to(logits.device, torch.float64)[labels]
    wide = logits.double()
    value = _weighted(loss, wide, weights.clamp_min(0))
    negative = (-weights).clamp_min(0)
    if floor > 0:
        raised = loss.posterior(wide).clamp_min(floor)
        wide = loss.logits_of(raised / raised.sum(-1, keepdim=True))
    return (value - _weighted(loss, wide, negative)).to(logits.dtype)


def _weighted(loss: Loss, logits: Tensor, weights: Tensor) -> Tensor:
    """Return Σ_j weights_j·loss_j of each row, for weights of at least 0."""
    total = weights.sum(-1, keepdim=True)
    even = torch.full_like(weights, 1 / weights.shape[-1])
    distributions = torch.where(total > 0, weights / total.clamp_min(_MARGIN), even)
    losses: Tensor = loss(logits, distributions)
    return total.squeeze(-1) * losses


def importance(posterior: Tensor, labels: Tensor, matrix: Tensor, cap: float) -> Tensor:
    """Return the weight p_y/(pT)_y of each row, (B,): how much rarer its label would be among labels without noise.

    Args:
        posterior: p of the true class, (B, K). A gradient flows through it: detach it if none should.
        labels: The noisy labels, (B,).
        matrix: T, (K, K).
        cap: The largest weight. It matters only if some class keeps its label with a probability below 1/cap.

    Example:
        >>> matrix = torch.tensor([[0.8, 0.2], [0.4, 0.6]])
        >>> importance(torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([0, 1]), matrix, 10.0)
        tensor([0.8333, 0.0000])
    """
    column = labels[:, None]
    given = full_product(posterior, matrix).gather(1, column).squeeze(1)
    own = posterior.gather(1, column).squeeze(1)
    return (own / (given + torch.finfo(given.dtype).tiny)).clamp_max(cap)
