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


def shrink(images: Tensor, side: int | None) -> Tensor:
    """Return normalised images (B, C, H, W) with `side` pixels on their shorter side; images as small stay as they are.

    Example:
        >>> import torch
        >>> shrink(torch.zeros(5, 3, 32, 48), 16).shape
        torch.Size([5, 3, 16, 24])
    """
    if side is None or images.dim() != 4:
        return images
    height, width = images.shape[2:]
    shorter = min(height, width)
    if side >= shorter:
        return images
    size = [round(height * side / shorter), round(width * side / shorter)]
    return F.interpolate(images, size=size, mode="bilinear", antialias=True, align_corners=False)
