"""Images in memory and no larger than needed, for work that goes over all of them several times."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from postmax.data.dataset import RowSource
from postmax.data.prefetch import read_ahead
from postmax.data.shrinking import shrunk_size
from postmax.progress import Stage, tell

_AT_ONCE = 256


def reduced_images(images: Tensor | RowSource, side: int) -> Tensor:
    """Return uint8 images (N, C, H, W) in memory whose shorter side has at most this many pixels.

    Larger images are reduced by averaging, which keeps their proportions. Smaller images stay as they are.

    Example:
        >>> reduced_images(torch.zeros(2, 3, 96, 64, dtype=torch.uint8), 32).shape
        torch.Size([2, 3, 48, 32])
    """
    if isinstance(images, Tensor) and min(images.shape[2:]) <= side:
        return images
    parts, done = [], 0
    chunks = torch.arange(len(images)).split(_AT_ONCE)
    for chunk in read_ahead(images.__getitem__, chunks):
        parts.append(_reduced(chunk, side))
        done += len(chunk)
        tell(Stage("reading images", done, len(images), "images"))
    return torch.cat(parts)


def _reduced(images: Tensor, side: int) -> Tensor:
    size = shrunk_size(images.shape[2:], side)
    if size == tuple(images.shape[2:]):
        return images
    return F.interpolate(images.float(), list(size), mode="area").round().to(torch.uint8)
