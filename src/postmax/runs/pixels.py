"""How images are prepared for a network: the middle is cut out, and pixels are normalised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from postmax.data import Augment, Statistics
from postmax.data.pixels import normalising_numbers


@dataclass(frozen=True)
class Pixels:
    """What is done to uint8 images (B, C, H, W) before a network gets them, without anything random.

    Attributes:
        mean: The mean of each channel, for pixels in [0, 1].
        std: The standard deviation of each channel.
        crop: The side of the square that is cut out of the middle; None for the whole image.
        padding: How many pixels are added on every side before that.
        padding_mode: "zeros" or "reflect".

    Example:
        >>> import torch
        >>> Pixels((0.5,), (0.25,), crop=2)(torch.full((1, 1, 4, 4), 255, dtype=torch.uint8))
        tensor([[[[2., 2.],
                  [2., 2.]]]])
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    crop: int | None = None
    padding: int = 0
    padding_mode: str = "zeros"

    @classmethod
    def of(cls, augment: Augment, channels: int) -> Pixels:
        """Return what an augmentation does to images that are judged."""
        statistics = augment.statistics or Statistics((0.0,) * channels, (1.0,) * channels)
        padding = 0 if augment.crop is None else augment.padding
        return cls(statistics.mean, statistics.std, augment.crop, padding, augment.padding_mode)

    def shape(self, image: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of an image after it was cut, from its shape (C, H, W)."""
        return image if self.crop is None else (image[0], self.crop, self.crop)

    def __call__(self, images: Tensor) -> Tensor:
        """Return the images as a network gets them, float32."""
        if self.crop is not None:
            if self.padding:
                mode = "constant" if self.padding_mode == "zeros" else "reflect"
                images = F.pad(images, (self.padding,) * 4, mode=mode)
            top, left = ((side - self.crop) // 2 for side in images.shape[2:])
            images = images[..., top : top + self.crop, left : left + self.crop]
        # Nothing is cached: an exporter runs this with tensors that have no values.
        scale, shift = normalising_numbers(Statistics(self.mean, self.std), len(self.mean), images.device)
        return images.float() * scale + shift

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a JSON file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Pixels:
        """Return what `to_dict` described."""
        return cls(**{**content, "mean": tuple(content["mean"]), "std": tuple(content["std"])})
