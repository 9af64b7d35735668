"""Operations on a whole batch of images that torch has only for one image at a time, or only slowly."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from postmax.data.dataset import Statistics
from postmax.errors import InputError


def windows(images: Tensor, top: Tensor, left: Tensor, rows: int, columns: int) -> Tensor:
    """From each image (or from one image for all) the window that begins at (top, left): (B, C, rows, columns).

    A row of a window is `columns` neighbours in memory. So all windows are one `index_select` among all runs of that
    length, a view that costs nothing; copying whole rows is twice as fast as gathering pixels.

    Example:
        >>> image = torch.arange(9).view(1, 1, 3, 3)
        >>> windows(image, torch.tensor([0, 1]), torch.tensor([1, 0]), 2, 2).tolist()
        [[[[1, 2], [4, 5]]], [[[3, 4], [6, 7]]]]
    """
    count, channels, height, width = images.shape
    if count == 0:
        return images.new_empty(0, channels, rows, columns)
    place = torch.arange(count, device=images.device) * (channels * height * width) + top * width + left
    channel = torch.arange(channels, device=images.device) * (height * width)
    row = torch.arange(rows, device=images.device) * width
    first = place[:, None, None] + channel[:, None] + row
    runs = images.flatten().unfold(0, columns, 1)
    return runs.index_select(0, first.flatten()).view(len(top), channels, rows, columns)


def mirror_some(images: Tensor, flip: Tensor) -> Tensor:
    """The uint8 images, mirrored left to right where `flip` is 1.

    `a ^ ((a ^ b) & mask)` takes b where the mask is all ones and a where it is zero: on bytes that is several times
    as fast as `torch.where`.

    Example:
        >>> images = torch.tensor([1, 2, 1, 2], dtype=torch.uint8).view(2, 1, 1, 2)
        >>> mirror_some(images, torch.tensor([0, 1])).flatten().tolist()
        [1, 2, 2, 1]
    """
    mask = (flip * 255).to(torch.uint8).view(-1, 1, 1, 1)
    return images.flip(3).bitwise_xor_(images).bitwise_and_(mask).bitwise_xor_(images)


@lru_cache(maxsize=64)
def scale_and_shift(statistics: Statistics | None, channels: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """(x/255 − mean)/std as x·scale + shift, both (C, 1, 1); remembered, so that a GPU gets them once.

    Raises:
        InputError: If the statistics are of another number of channels.
    """
    mean, std = ((0.0,) * channels, (1.0,) * channels) if statistics is None else (statistics.mean, statistics.std)
    if not len(mean) == len(std) == channels:
        raise InputError(
            f"the statistics have {len(mean)} means and {len(std)} deviations, the images {channels} channels: they "
            "belong to another data set. postmax.data.channel_statistics computes those of your images."
        )
    scale = torch.tensor([1 / (255 * s) for s in std], device=device)
    shift = torch.tensor([-m / s for m, s in zip(mean, std, strict=True)], device=device)
    return scale.view(-1, 1, 1), shift.view(-1, 1, 1)
