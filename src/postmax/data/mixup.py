"""Mixup: training on mixtures of pairs of rows and of their labels (Zhang et al., 2018)."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from postmax.errors import InputError, LabelError


class Mixed(NamedTuple):
    """Rows that are mixed in pairs.

    Attributes:
        inputs: weight · inputs + (1 − weight) · inputs[partner].
        targets: The same mixture of the label distributions, (B, K).
        partner: (B,) the other row of the pair of each row.
        weight: (B,) λ of each row.
    """

    inputs: Tensor
    targets: Tensor
    partner: Tensor
    weight: Tensor


def mixup(
    inputs: Tensor,
    targets: Tensor,
    alpha: float,
    generator: torch.Generator | None = None,
    *,
    num_classes: int | None = None,
    per_sample: bool = False,
    at_least_half: bool = False,
) -> Mixed:
    """Mix every row with another one, with λ from Beta(alpha, alpha).

    `postmax.FPMLLoss` takes the mixed targets as its target.

    Args:
        inputs: Floats (B, ...), after augmentation.
        targets: Class indices (B,), or label distributions (B, K).
        alpha: A positive number. With 1, λ is uniform; with small values most rows are mixed little.
        generator: The source of the random numbers; by default torch's global generator.
        num_classes: K; needed if the targets are class indices.
        per_sample: Whether each row has its own λ, instead of one for the batch.
        at_least_half: Whether to replace λ by max(λ, 1 − λ), so that each row is the larger part of its mixture
            (MixMatch, DivideMix).

    Raises:
        InputError: If alpha is not positive, or if inputs and targets do not have the same number of rows.
        LabelError: If a class index is outside 0…K−1.

    Example:
        >>> mixed = mixup(torch.randn(4, 3), torch.tensor([0, 1, 2, 1]), 1.0, num_classes=3)
        >>> mixed.targets.shape, bool(torch.allclose(mixed.targets.sum(1), torch.ones(4)))
        (torch.Size([4, 3]), True)
    """
    if not inputs.is_floating_point():
        raise InputError(f"mixup averages rows, so they must be floats, got {inputs.dtype}: normalise images first.")
    if len(inputs) != len(targets):
        raise InputError(f"mixup got {len(inputs)} inputs and {len(targets)} targets.")
    distributions = _distributions(targets, num_classes)
    device = inputs.device if generator is None else generator.device
    partner = torch.randperm(len(inputs), generator=generator, device=device)
    weight = beta(alpha, len(inputs) if per_sample else 1, generator, device=device).expand(len(inputs))
    if at_least_half:
        weight = torch.maximum(weight, 1 - weight)
    partner, weight = partner.to(inputs.device), weight.to(inputs)
    return Mixed(_mix(inputs, partner, weight), _mix(distributions, partner, weight), partner, weight)


def beta(
    alpha: float,
    count: int,
    generator: torch.Generator | None = None,
    *,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Return `count` draws from Beta(alpha, alpha) in float64. `torch.distributions` does not take a generator.

    G₁/(G₁ + G₂) of two Gamma(alpha) variables, taken as logarithms of Gamma(alpha + 1)·U^(1/alpha): for small alpha
    both would often underflow to 0, and 0/0 is not a number.

    Raises:
        InputError: If alpha is not a positive number.
    """
    if not 0 < alpha < float("inf"):
        raise InputError(f"alpha of the Beta distribution must be positive and finite, got {alpha}.")
    shape = torch.full((2, count), alpha + 1, dtype=torch.float64, device=device)
    gamma = torch._standard_gamma(shape, generator=generator)
    uniform = 1 - torch.rand(2, count, generator=generator, dtype=torch.float64, device=device)  # it is never 0
    first, second = gamma.log() + uniform.log() / alpha
    return torch.sigmoid(first - second)


def _distributions(targets: Tensor, num_classes: int | None) -> Tensor:
    if targets.dim() == 2 and targets.is_floating_point():
        return targets
    if targets.dim() != 1 or targets.is_floating_point():
        raise InputError(
            "targets of mixup are class indices (B,) or label distributions (B, K), got "
            f"{targets.dtype} of shape {tuple(targets.shape)}."
        )
    if num_classes is None:
        raise InputError("mixup of class indices needs num_classes.")
    if len(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < num_classes:
        raise LabelError(f"targets of mixup must lie in 0…{num_classes - 1}.")
    return F.one_hot(targets.long(), num_classes).to(torch.get_default_dtype())


def _mix(rows: Tensor, partner: Tensor, weight: Tensor) -> Tensor:
    share = weight.to(rows.dtype).view(-1, *[1] * (rows.dim() - 1))
    return rows * share + rows[partner] * (1 - share)
