"""Policies: which operations each image of a batch goes through, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from postmax.data.augment import Augment, Draw
from postmax.data.image_operations import Operation
from postmax.errors import InputError


class Policy(NamedTuple):
    """The operations that each image of a batch goes through: (n, B) each, for n operations one after the other.

    Attributes:
        operation: The position of the operation in a table of operations.
        magnitude: How strong it is, from 0 to 1.
        negative: 1 where a strength that can have a sign is negative.
    """

    operation: Tensor
    magnitude: Tensor
    negative: Tensor


def apply_policy(images: Tensor, policy: Policy, operations: Mapping[str, Operation]) -> Tensor:
    """Return uint8 images after the operations of a policy, on the device of the images.

    Raises:
        InputError: If the images have neither one channel nor three, which the operations on colours need.

    Example:
        >>> from postmax.data.image_operations import OPERATIONS
        >>> places = torch.tensor([[list(OPERATIONS).index(name) for name in ("identity", "solarize")]])
        >>> policy = Policy(places, torch.tensor([[0.0, 0.5]]), torch.zeros(1, 2))
        >>> apply_policy(torch.full((2, 1, 1, 1), 200, dtype=torch.uint8), policy, OPERATIONS).flatten().tolist()
        [200, 55]
    """
    policy = Policy(*(numbers.to(images.device, non_blocking=True) for numbers in policy))
    if len(policy.operation) and images.shape[1] not in (1, 3):
        raise InputError(
            f"operations on colours are for images with one or three channels, got {images.shape[1]}: "
            "use the view 'weak' for these images."
        )
    for one_of_each in zip(*policy, strict=True):
        images = _apply_each(images, Policy(*one_of_each), operations)
    return images


def crop_change_and_blank(
    images: Tensor, weak: Augment, draw: Draw, policy: Policy, operations: Mapping[str, Operation], cutout: int | None
) -> Tensor:
    """Return images that are cropped, flipped, changed by a policy, normalised and blanked.

    Args:
        images: uint8 (B, C, H, W).
        weak: The crop, the flip and the statistics.
        draw: The random numbers of crop, flip and cutout.
        policy: The operations between flip and normalisation.
        operations: The table of operations that the policy refers to.
        cutout: Side of the blanked square; None for that of `weak`, or half the side of the image if that is 0.
    """
    draw = Draw(*(numbers.to(images.device, non_blocking=True) for numbers in draw))
    weak = replace(weak, random=True)
    windows = apply_policy(weak.crop_and_flip(images, draw), policy, operations)
    side = (weak.cutout or min(windows.shape[2:]) // 2) if cutout is None else cutout
    return replace(weak, cutout=side).normalise(windows, draw)


def _apply_each(images: Tensor, policy: Policy, operations: Mapping[str, Operation]) -> Tensor:
    """Apply one operation to each image; images with the same operation are changed together."""
    if len(images) == 0:
        return images
    order = policy.operation.argsort()
    counts = policy.operation.bincount(minlength=len(operations)).tolist()
    changed = [
        operation.apply(
            images.index_select(0, chosen), operation.strength(policy.magnitude[chosen], policy.negative[chosen])
        )
        for operation, chosen in zip(operations.values(), order.split(counts), strict=True)
        if len(chosen)
    ]
    # Gathering whole images is several times as fast as writing each group to its places.
    return torch.cat(changed).index_select(0, order.argsort())
