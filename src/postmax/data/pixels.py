"""Operations on a batch of images that torch has for one image only, or that are slow in torch."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from postmax.data.dataset import Statistics
from postmax.errors import InputError


def windows(images: Tensor, top: Tensor, left: Tensor, rows: int, columns: int) -> Tensor:
    """Return windows (B, C, rows, columns) that begin at (top, left), from each image or from one image for all.

    The pixels of a row of a window are neighbours in memory. So all windows are one `index_select` among all runs of
    this length, which are a view of the images. Copying whole rows is twice as fast as gathering pixels.

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
    """Return the uint8 images, mirrored left to right where `flip` is 1.

    `a ^ ((a ^ b) & mask)` is b where all bits of the mask are one, and a where they are zero. For bytes this is several
    times as fast as `torch.where`.

    Example:
        >>> images = torch.tensor([1, 2, 1, 2], dtype=torch.uint8).view(2, 1, 1, 2)
        >>> mirror_some(images, torch.tensor([0, 1])).flatten().tolist()
        [1, 2, 2, 1]
    """
    mask = (flip * 255).to(torch.uint8).view(-1, 1, 1, 1)
    return images.flip(3).bitwise_xor_(images).bitwise_and_(mask).bitwise_xor_(images)


def normalising_numbers(
    statistics: Statistics | None, channels: int, device: torch.device | None = None
) -> tuple[Tensor, Tensor]:
    """Return scale and shift, (C, 1, 1) each, with x·scale + shift = (x/255 − mean)/std.

    Raises:
        InputError: If the statistics have another number of channels.
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


@lru_cache(maxsize=64)
def scale_and_shift(statistics: Statistics | None, channels: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return `normalising_numbers`, cached so that they are copied to a GPU only once."""
    return normalising_numbers(statistics, channels, device)
