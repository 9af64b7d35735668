"""A frozen network that turns images into features."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from postmax.errors import InputError

# Larger batches are not faster on a CPU; memory grows with their pixels.
_PIXELS_AT_ONCE = 250 * 112 * 112


@dataclass(frozen=True)
class Extractor:
    """A frozen network for images.

    Attributes:
        name: Its name, such as `timm:resnet18`.
        network: From normalised images (B, 3, S, S) to features (B, d).
        mean: What is subtracted from the bytes of each channel.
        std: What the result is divided by.
        side: The side of the images that the network was trained with.
        fixed: Whether it takes images of this side only.
    """

    name: str
    network: nn.Module
    mean: tuple[float, ...]
    std: tuple[float, ...]
    side: int
    fixed: bool = True

    def __post_init__(self) -> None:
        self.network.eval().requires_grad_(requires_grad=False)

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of the weights and of what is done to images before: with the same one, features are the same."""
        found = hashlib.sha256(repr((self.mean, self.std)).encode())
        for name, weight in sorted(self.network.state_dict().items()):
            found.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
            found.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        return found.hexdigest()

    def on(self, device: torch.device) -> Extractor:
        """Return the extractor on a device."""
        return replace(self, network=self.network.to(device))


def features_of(extractor: Extractor, images: Tensor, side: int) -> Tensor:
    """Return the features (N, d), float32, of uint8 images (N, 1 or 3, H, W), enlarged or reduced to a side.

    The batches in which images go through a network change the last digits of their features. With EfficientNet-Lite0
    they differ by up to 0.00002, where the largest feature is 6.
    """
    prepared = normalised(extractor, resized(in_colour(images), side))
    with torch.no_grad():
        try:
            found: Tensor = extractor.network(prepared)
        except (RuntimeError, AssertionError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"{extractor.name} cannot take images of {side} × {side} pixels: {reason}") from error
    if found.ndim != 2:
        raise InputError(f"{extractor.name} gives {tuple(found.shape[1:])} for an image, not a row of features.")
    return found.float()


def normalised(extractor: Extractor, images: Tensor) -> Tensor:
    """Return images whose bytes are shifted and scaled as the network was trained with."""
    mean, std = (torch.tensor(v, device=images.device).view(-1, 1, 1) for v in (extractor.mean, extractor.std))
    return ((images - mean) / std).contiguous(memory_format=torch.channels_last)


def in_colour(images: Tensor) -> Tensor:
    """Return images with three channels; a grey one is taken three times."""
    return checked_images(images).expand(-1, 3, -1, -1)


def checked_images(images: Tensor) -> Tensor:
    """Return images, if they are some.

    Raises:
        InputError: If they are not uint8 (N, 1 or 3, H, W).
    """
    if images.dtype != torch.uint8 or images.ndim != 4:
        kind = str(images.dtype).removeprefix("torch.")
        raise InputError(f"images are bytes (uint8) of shape (N, channels, H, W), not {kind} {tuple(images.shape)}.")
    if images.shape[1] not in (1, 3):
        raise InputError(f"images have {images.shape[1]} channels, but frozen networks take 1 (grey) or 3 (colours).")
    return images


def resized(images: Tensor, side: int) -> Tensor:
    """Return float images (N, C, side, side) with values in [0, 255]: the shorter side is scaled, the middle cut out.

    Example:
        >>> resized(torch.full((1, 1, 2, 4), 7, dtype=torch.uint8), 3).shape
        torch.Size([1, 1, 3, 3])
    """
    height, width = images.shape[2:]
    scale = side / min(height, width)
    rows, columns = max(side, round(height * scale)), max(side, round(width * scale))
    found = images.float()
    if (rows, columns) != (height, width):
        found = F.interpolate(
            found, size=(rows, columns), mode="bicubic", align_corners=False, antialias=scale < 1
        ).clamp(0, 255)
    top, left = (rows - side) // 2, (columns - side) // 2
    return found[..., top : top + side, left : left + side]


def images_at_once(side: int) -> int:
    """Return how many images of a side go through a network in one batch."""
    return max(1, _PIXELS_AT_ONCE // side**2)
