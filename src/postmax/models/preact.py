"""The pre-activation ResNet18 of DivideMix, ELR+ and SOP+."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from postmax.models.catalogue import register
from postmax.models.initialisation import initialise
from postmax.models.network import Network
from postmax.models.shapes import check_classes, check_image


class PreActBlock(nn.Module):
    """Batch normalisation and ReLU before each of two 3×3 convolutions.

    The shortcut starts after the first ReLU in every block, as in the code of DivideMix. In He et al. (2016b) it starts
    at the input of the block if the block does not change the shape.

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
        x = F.relu(self.bn1(x))
        shortcut: Tensor = x if self.shortcut is None else self.shortcut(x)
        out: Tensor = self.conv2(F.relu(self.bn2(self.conv1(x))))
        return out + shortcut


class PreActResNet18(Network):
    """A 3×3 stem with batch normalisation and ReLU, eight pre-activation blocks, global average pooling, logits.

    As in the code of DivideMix (Li et al., 2020), the last sum is neither normalised nor activated.

    Args:
        input_shape: (channels, height, width), at least 8×8.
        num_classes: K.
        init: One of `INITIALISATIONS`.

    Raises:
        InputError: If the rows are not images, the images are too small, or an argument is unknown.

    Example:
        >>> sum(p.numel() for p in PreActResNet18((3, 32, 32), 10).parameters())
        11171274
    """

    def __init__(self, input_shape: Sequence[int], num_classes: int, *, init: str = "torch") -> None:
        super().__init__()
        channels, _, _ = check_image("preact-resnet18", input_shape, least=8, instead="'mlp'")
        self.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(PreActBlock(64, 64, 1), PreActBlock(64, 64, 1))
        self.layer2 = nn.Sequential(PreActBlock(64, 128, 2), PreActBlock(128, 128, 1))
        self.layer3 = nn.Sequential(PreActBlock(128, 256, 2), PreActBlock(256, 256, 1))
        self.layer4 = nn.Sequential(PreActBlock(256, 512, 2), PreActBlock(512, 512, 1))
        self.fc = nn.Linear(512, check_classes(num_classes))
        initialise(self, init)

    def features(self, inputs: Tensor) -> Tensor:
        """Return the output of the last stage, averaged over the image."""
        x = F.relu(self.bn1(self.conv1(inputs)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return F.adaptive_avg_pool2d(x, 1).flatten(1)


register(
    "preact-resnet18", PreActResNet18, summary="pre-activation ResNet18 of DivideMix, ELR+ and SOP+", channels_last=True
)
