"""The wide residual network WRN-28-2 (Zagoruyko and Komodakis, 2016)."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from postmax.models.catalogue import register
from postmax.models.initialisation import initialise
from postmax.models.network import Network
from postmax.models.shapes import check_classes, check_image

_STEM = 16
_PLANES = (32, 64, 128)
_BLOCKS = 4  # of each stage: 28 = 4 + 6·4


class WideBlock(nn.Module):
    """Batch normalisation and ReLU before each of two 3×3 convolutions; the shortcut starts at the input of the block.

    Args:
        channels: Number of channels of the input.
        planes: Number of channels of the output.
        stride: 2 to halve the side of the image.
    """

    def __init__(self, channels: int, planes: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, planes, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.shortcut: nn.Conv2d | None = None
        if stride != 1 or channels != planes:
            self.shortcut = nn.Conv2d(channels, planes, 1, stride=stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of both branches, without an activation."""
        out: Tensor = self.conv1(F.relu(self.bn1(x)))
        out = self.conv2(F.relu(self.bn2(out)))
        shortcut: Tensor = x if self.shortcut is None else self.shortcut(x)
        return out + shortcut


class WRN28x2(Network):
    """A 3×3 stem, three stages of four blocks with 32, 64 and 128 planes, normalisation, ReLU, average, logits.

    Englesson and Azizpour (SGN, 2024) train it on CIFAR and CIFAR-N.

    Args:
        input_shape: (channels, height, width), at least 8×8.
        num_classes: K.
        init: One of `INITIALISATIONS`.

    Raises:
        InputError: If the rows are not images, the images are too small, or an argument is unknown.

    Example:
        >>> sum(p.numel() for p in WRN28x2((3, 32, 32), 10).parameters())
        1467610
    """

    def __init__(self, input_shape: Sequence[int], num_classes: int, *, init: str = "fan-out") -> None:
        super().__init__()
        channels, _, _ = check_image("wrn-28-2", input_shape, least=8, instead="'mlp'")
        self.conv1 = nn.Conv2d(channels, _STEM, 3, padding=1, bias=False)
        blocks: list[nn.Module] = []
        channels = _STEM
        for stage, planes in enumerate(_PLANES):
            for place in range(_BLOCKS):
                blocks.append(WideBlock(channels, planes, 2 if stage and not place else 1))
                channels = planes
        self.blocks = nn.Sequential(*blocks)
        self.bn = nn.BatchNorm2d(channels)
        self.fc = nn.Linear(channels, check_classes(num_classes))
        initialise(self, init)

    def features(self, inputs: Tensor) -> Tensor:
        """Return the output of the last stage, normalised, activated and averaged over the image."""
        x = F.relu(self.bn(self.blocks(self.conv1(inputs))))
        return F.adaptive_avg_pool2d(x, 1).flatten(1)


register("wrn-28-2", WRN28x2, summary="wide ResNet with 28 layers, twice as wide, of SGN", channels_last=True)
