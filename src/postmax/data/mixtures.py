"""What all mixtures of rows share: pairs of rows, their weights, and label distributions."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from postmax.errors import InputError, LabelError


class Mixed(NamedTuple):
    """Rows that are mixed in pairs.

    Attributes:
        inputs: Mixup: weight · inputs + (1 − weight) · inputs[partner]. CutMix and FMix: a share `weight` of the pixels
            (or features) is the row's own, and the others are those of inputs[partner].
        targets: weight · targets + (1 − weight) · targets[partner], label distributions (B, K).
        partner: (B,) the other row of the pair of each row.
        weight: (B,) λ of each row.
    """

    inputs: Tensor
    targets: Tensor
    partner: Tensor
    weight: Tensor


class Pairs(NamedTuple):
    """Which rows are mixed, and how much of each.

    Attributes:
        targets: Label distributions (B, K).
        partner: (B,) the other row of each pair, on the device of the inputs.
        weight: (B,) λ of each row in float64, on the device of the generator.
    """

    targets: Tensor
    partner: Tensor
    weight: Tensor


def draw_pairs(
    inputs: Tensor,
    targets: Tensor,
    alpha: float,
    generator: torch.Generator | None,
    *,
    num_classes: int | None,
    per_sample: bool,
    at_least_half: bool,
) -> Pairs:
    """Draw a partner and λ from Beta(alpha, alpha) for every row. The arguments are those of `mixup`.

    Raises:
        InputError: If alpha is not positive, or if inputs and targets do not have the same number of rows.
        LabelError: If a class index is outside 0…K−1.
    """
    if not inputs.is_floating_point():
        raise InputError(f"rows to mix must be floats, got {inputs.dtype}: normalise images first.")
    if len(inputs) != len(targets):
        raise InputError(f"rows to mix need one target each, got {len(inputs)} inputs and {len(targets)} targets.")
    distributions = _distributions(targets, num_classes)
    device = device_of(inputs, generator)
    partner = torch.randperm(len(inputs), generator=generator, device=device)
    weight = beta(alpha, len(inputs) if per_sample else 1, generator, device=device).expand(len(inputs))
    if at_least_half:
        weight = torch.maximum(weight, 1 - weight)
    return Pairs(distributions, partner.to(inputs.device), weight)


def mix(rows: Tensor, partner: Tensor, weight: Tensor) -> Tensor:
    """Return weight · rows + (1 − weight) · rows[partner].

    Example:
        >>> mix(torch.tensor([[0.0], [4.0]]), torch.tensor([1, 0]), torch.tensor([0.75, 1.0])).tolist()
        [[1.0], [4.0]]
    """
    share = weight.to(rows.dtype).view(-1, *[1] * (rows.dim() - 1))
    return rows * share + rows[partner] * (1 - share)


def exchange(inputs: Tensor, pairs: Pairs, own: Tensor) -> Mixed:
    """Return rows that keep what `own` marks and take the rest from their partner.

    The weight of a row is the share that it keeps. So inputs and targets are mixed in the same proportion.

    Args:
        inputs: Floats: images (B, C, H, W) or features (B, d).
        pairs: The partners and the label distributions. Their weights are not used.
        own: A mask (B, H, W) for images or (B, d) for features.

    Example:
        >>> pairs = Pairs(torch.eye(2), torch.tensor([1, 0]), torch.zeros(2))
        >>> own = torch.tensor([[True, True, True, False], [False, False, True, True]])
        >>> mixed = exchange(torch.tensor([[1.0] * 4, [2.0] * 4]), pairs, own)
        >>> mixed.inputs.tolist(), mixed.targets.tolist()
        ([[1.0, 1.0, 1.0, 2.0], [1.0, 1.0, 2.0, 2.0]], [[0.75, 0.25], [0.5, 0.5]])
    """
    own = own.to(inputs.device)
    weight = own.flatten(1).float().mean(1).to(inputs.dtype)
    mask = own[:, None] if inputs.dim() == 4 else own
    mixed = torch.where(mask, inputs, inputs[pairs.partner])
    return Mixed(mixed, mix(pairs.targets, pairs.partner, weight), pairs.partner, weight)


def largest(scores: Tensor, share: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Return a mask (B, n) of the largest scores of each row, as many as its share of n.

    A number that is not whole is rounded up or down at random, so that it is right on average.

    Args:
        scores: (B, n).
        share: (B,), from 0 to 1.
        generator: The source of the random numbers of rounding.

    Example:
        >>> largest(torch.tensor([[3.0, 1.0, 4.0, 2.0]]), torch.tensor([0.5])).tolist()
        [[True, False, True, False]]
    """
    rounding = torch.rand(len(scores), generator=generator, device=share.device, dtype=torch.float64)
    count = (share.double() * scores.shape[1] + rounding).long().to(scores.device)
    chosen = torch.arange(scores.shape[1], device=scores.device) < count[:, None]
    return torch.zeros_like(chosen).scatter_(1, scores.argsort(1, descending=True), chosen)


def some_features(inputs: Tensor, share: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Return a mask (B, d) of random features of each row, as many as its share of d."""
    device = device_of(inputs, generator)
    return largest(torch.rand(inputs.shape, generator=generator, device=device), share, generator)


def are_images(inputs: Tensor, name: str) -> bool:
    """Return whether the rows are images (B, C, H, W), and not features (B, d).

    Raises:
        InputError: If they are neither; `name` is the mixture that was asked for.
    """
    if inputs.dim() not in (2, 4):
        raise InputError(
            f"{name} is for images (B, C, H, W) and features (B, d), got shape {tuple(inputs.shape)}: "
            "mixup takes rows of any shape."
        )
    return inputs.dim() == 4


def device_of(inputs: Tensor, generator: torch.Generator | None) -> torch.device:
    """Return where random numbers are drawn: where the generator is, or the inputs if there is none."""
    return inputs.device if generator is None else generator.device


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
            "targets of a mixture are class indices (B,) or label distributions (B, K), got "
            f"{targets.dtype} of shape {tuple(targets.shape)}."
        )
    if num_classes is None:
        raise InputError("a mixture of class indices needs num_classes.")
    if len(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < num_classes:
        raise LabelError(f"targets of a mixture must lie in 0…{num_classes - 1}.")
    return F.one_hot(targets.long(), num_classes).to(torch.get_default_dtype())
