"""Channel statistics to normalise images with: published ones by name, or computed from the images."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

import torch
from torch import Tensor

from postmax.data.dataset import RowSource, Statistics
from postmax.data.prefetch import read_ahead
from postmax.errors import InputError

# A plain name has the deviation over all pixels. The published code of papers uses different numbers, and accuracies
# are compared to a tenth of a per cent. So other conventions have their own names:
#   (plain)  APL, ALFs, ANL
#   :elr     ELR, SOP, CIFAR-N, CORES, RDA, NLS and the authors' f-PML; the CIFAR-10 deviations are smaller because they
#            are those within an image, averaged over images
#   :promix  ProMix; the plain values rounded to three digits
STATISTICS = {
    "cifar10": Statistics((0.49139968, 0.48215827, 0.44653124), (0.24703233, 0.24348505, 0.26158768)),
    "cifar10:elr": Statistics((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar10:promix": Statistics((0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261)),
    "cifar100": Statistics((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
    "cifar100:elr": Statistics((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),
    "cifar100:promix": Statistics((0.507, 0.487, 0.441), (0.267, 0.256, 0.276)),
    "imagenet": Statistics((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "mnist": Statistics((0.1307,), (0.3081,)),
    "fashion-mnist": Statistics((0.2860,), (0.3530,)),
}


def channel_statistics(images: Tensor | RowSource, *, rows_at_once: int = 256) -> Statistics:
    """Return the mean and standard deviation of each channel over all pixels of all images.

    Pixels are counted by their value, so the sums are exact for data sets of any size.

    Args:
        images: uint8 (N, C, H, W): a tensor, or a `RowSource` that stream from disk.
        rows_at_once: The number of images that are in memory at the same time.

    Raises:
        InputError: If there are no images or they are not uint8 (N, C, H, W).

    Example:
        >>> channel_statistics(torch.tensor([[[[0, 255]]]], dtype=torch.uint8))
        Statistics(mean=(0.5,), std=(0.5,))
    """
    if len(images) == 0:
        raise InputError("channel statistics need at least one image; the data set is empty.")
    chunks: Iterable[Tensor]
    if isinstance(images, Tensor):
        chunks = torch.split(images, rows_at_once)
    else:
        chunks = read_ahead(images.__getitem__, torch.split(torch.arange(len(images)), rows_at_once))
    counts = [_count_values(chunk) for chunk in chunks]
    moments = [_mean_and_deviation(channel) for channel in torch.stack(counts).sum(0).tolist()]
    return Statistics(mean=tuple(mean for mean, _ in moments), std=tuple(std for _, std in moments))


def _count_values(images: Tensor) -> Tensor:
    """Return how often each value 0…255 occurs in each channel: (C, 256)."""
    if images.dtype != torch.uint8 or images.dim() != 4:
        raise InputError(
            f"channel statistics are for uint8 images (N, C, H, W), got {images.dtype} of shape {tuple(images.shape)}."
        )
    return torch.stack([torch.bincount(channel.flatten(), minlength=256) for channel in images.unbind(1)])


def _mean_and_deviation(counts: list[int]) -> tuple[float, float]:
    """Return mean and deviation. All sums are whole numbers, which are exact in Python."""
    pixels = sum(counts)
    total = sum(value * count for value, count in enumerate(counts))
    squares = sum(value * value * count for value, count in enumerate(counts))
    return total / (255 * pixels), sqrt((pixels * squares - total * total) / (255 * pixels) ** 2)
