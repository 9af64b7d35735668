"""Smaller images for the first part of a training, which then costs less."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F

Stages = Sequence[tuple[float, int]]


def side_at(stages: Stages, share: float) -> int | None:
    """Return the side of images when this share of the training is over; None for images as they are.

    Args:
        stages: Until which share of the training images have which side, in rising order.
        share: From 0 to 1.

    Example:
        >>> [side_at([(0.4, 18), (0.7, 24)], share) for share in (0.0, 0.39, 0.4, 0.7)]
        [18, 18, 24, None]
    """
    # An epoch at 0.7 of the training may come out as 0.7000000000000001, or as 0.6999999999999999.
    return next((side for until, side in stages if share < until - 1e-9), None)


def epochs_of_sides(stages: Stages, epochs: int) -> dict[int, int]:
    """Return how many epochs have images of the same side, by the first of these epochs.

    Example:
        >>> epochs_of_sides([(0.4, 18), (0.7, 24)], 12)
        {0: 5, 5: 4, 9: 3}
    """
    first: dict[int | None, int] = {}
    found: dict[int, int] = {}
    for number in range(epochs):
        start = first.setdefault(side_at(stages, number / epochs), number)
        found[start] = found.get(start, 0) + 1
    return found


def shrunk_size(size: Sequence[int], side: int | None) -> tuple[int, int]:
    """Return height and width of an image of this size after `shrink`.

    Example:
        >>> shrunk_size((32, 48), 16), shrunk_size((8, 8), 16)
        ((16, 24), (8, 8))
    """
    height, width = size
    shorter = min(height, width)
    if side is None or side >= shorter:
        return height, width
    return round(height * side / shorter), round(width * side / shorter)


def shrink(images: Tensor, side: int | None) -> Tensor:
    """Return normalised images (B, C, H, W) with `side` pixels on their shorter side; images as small stay as they are.

    Example:
        >>> import torch
        >>> shrink(torch.zeros(5, 3, 32, 48), 16).shape
        torch.Size([5, 3, 16, 24])
    """
    if images.dim() != 4 or (size := shrunk_size(images.shape[2:], side)) == tuple(images.shape[2:]):
        return images
    return F.interpolate(images, size=list(size), mode="bilinear", antialias=True, align_corners=False)
