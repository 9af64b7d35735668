"""Mixup: training on mixtures of pairs of rows and of their labels (Zhang et al., 2018)."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.data.mixtures import Mixed, draw_pairs, mix


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
    pairs = draw_pairs(
        inputs, targets, alpha, generator, num_classes=num_classes, per_sample=per_sample, at_least_half=at_least_half
    )
    weight = pairs.weight.to(inputs)
    return Mixed(mix(inputs, pairs.partner, weight), mix(pairs.targets, pairs.partner, weight), pairs.partner, weight)
