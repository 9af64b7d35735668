"""A small network for small images, for when a CPU is all there is."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from postmax.errors import InputError
from postmax.models.catalogue import register
from postmax.models.initialisation import initialise
from postmax.models.network import Network
from postmax.models.shapes import check_classes, check_image, is_count


class Small(Network):
    """Draft."""

    def __init__(self, input_shape: Sequence[int], num_classes: int, *, width: int = 32, init: str = "torch") -> None:
        super().__init__()
        channels, _, _ = check_image("small", input_shape, least=8, instead="'mlp'")
        if not is_count(width):
            raise InputError(f"width is how many channels the first stage has, a whole number; got {width!r}.")
        self.body = nn.Sequential(
            *_layer(channels, width, 2), *_layer(width, 2 * width), nn.MaxPool2d(2), *_layer(2 * width, 4 * width)
        )
        self.fc = nn.Linear(4 * width, check_classes(num_classes))
        initialise(self, init)

    def features(self, inputs: Tensor) -> Tensor:
        """The last stage, averaged over the image."""
        return F.adaptive_avg_pool2d(self.body(inputs), 1).flatten(1)


def _layer(channels: int, wide: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(channels, wide, 3, stride, padding=1, bias=False), nn.BatchNorm2d(wide), nn.ReLU()]


register("small", Small, summary="small convolutional network for CPUs", channels_last=True)
