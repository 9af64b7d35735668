"""Residual networks (He et al., 2016): ResNet18 and 34 for small images, ResNet50 for large ones.

The parameters have the same names as in torchvision, so that its ImageNet checkpoints can be loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from postmax.models.catalogue import register
from postmax.models.initialisation import initialise
from postmax.models.network import Network
from postmax.models.shapes import check_classes, check_image
from postmax.registry import unknown_name

# For each stem, the side of the smallest image: the network halves it until one pixel is left.
_STEMS = {"cifar": 8, "imagenet": 32}
_PLANES = (64, 128, 256, 512)


class Block(nn.Module):
    """One residual block.

    Args:
        channels: Number of channels of the input.
        planes: Number of channels of the convolutions. The output has `expansion` times as many.
        stride: 2 to halve the side of the image.
    """

    expansion: ClassVar[int]

    def __init__(self, channels: int, planes: int, stride: int) -> None:
        super().__init__()
        out = planes * self.expansion
        self.downsample: nn.Sequential | None = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(_conv(channels, out, 1, stride), nn.BatchNorm2d(out))

    def residual(self, x: Tensor) -> Tensor:
        """Return what is added to the shortcut."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Return relu(residual + shortcut)."""
        shortcut = x if self.downsample is None else self.downsample(x)
        return F.relu(self.residual(x) + shortcut)


class BasicBlock(Block):
    """Two 3×3 convolutions."""

    expansion = 1

    def __init__(self, channels: int, planes: int, stride: int) -> None:
        super().__init__(channels, planes, stride)
        self.conv1 = _conv(channels, planes, 3, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = _conv(planes, planes, 3)
        self.bn2 = nn.BatchNorm2d(planes)

    def residual(self, x: Tensor) -> Tensor:
        """Return what is added to the shortcut."""
        x = F.relu(self.bn1(self.conv1(x)))
        out: Tensor = self.bn2(self.conv2(x))
        return out


class Bottleneck(Block):
    """1×1, 3×3 and 1×1 convolutions.

    The 3×3 convolution has the stride, as in torchvision ("v1.5"). In He et al. the first one has it.
    """

    expansion = 4

    def __init__(self, channels: int, planes: int, stride: int) -> None:
        super().__init__(channels, planes, stride)
        self.conv1 = _conv(channels, planes, 1)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = _conv(planes, planes, 3, stride)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = _conv(planes, planes * self.expansion, 1)
        self.bn3 = nn.BatchNorm2d(planes * self.expansion)

    def residual(self, x: Tensor) -> Tensor:
        """Return what is added to the shortcut."""
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        out: Tensor = self.bn3(self.conv3(x))
        return out


class ResNet(Network):
    """A stem, four stages of blocks with 64, 128, 256 and 512 planes, global average pooling, logits.

    Args:
        input_shape: (channels, height, width).
        num_classes: K.
        block: `BasicBlock` or `Bottleneck`.
        depths: The number of blocks of each stage.
        stem: "cifar": one 3×3 convolution. "imagenet": 7×7 with stride 2 and a max-pool.
        init: One of `INITIALISATIONS`.
        name: Its name in error messages.

    Raises:
        InputError: If the rows are not images, the images are too small, or an argument is unknown.

    Example:
        >>> import torch
        >>> ResNet((1, 28, 28), 10, block=BasicBlock, depths=(1, 1, 1, 1))(torch.zeros(2, 1, 28, 28)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        num_classes: int,
        *,
        block: type[Block],
        depths: Sequence[int],
        stem: str = "cifar",
        init: str = "torch",
        name: str = "this ResNet",
    ) -> None:
        super().__init__()
        if stem not in _STEMS:
            raise unknown_name("stem", str(stem), _STEMS)
        instead = "stem='cifar'" if stem == "imagenet" else "'mlp'"
        channels, _, _ = check_image(name, input_shape, least=_STEMS[stem], instead=instead)
        self.conv1 = _conv(channels, 64, 3) if stem == "cifar" else _conv(channels, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.Identity() if stem == "cifar" else nn.MaxPool2d(3, stride=2, padding=1)
        channels = 64
        stages: list[nn.Sequential] = []
        for planes, depth in zip(_PLANES, depths, strict=True):
            blocks: list[nn.Module] = []
            for i in range(depth):
                blocks.append(block(channels, planes, 2 if stages and i == 0 else 1))
                channels = planes * block.expansion
            stages.append(nn.Sequential(*blocks))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.fc = nn.Linear(channels, check_classes(num_classes))
        initialise(self, init)

    def features(self, inputs: Tensor) -> Tensor:
        """Return the output of the last stage, averaged over the image."""
        x = self.maxpool(F.relu(self.bn1(self.conv1(inputs))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return F.adaptive_avg_pool2d(x, 1).flatten(1)


def resnet18(input_shape: Sequence[int], num_classes: int, *, stem: str = "cifar", init: str = "torch") -> ResNet:
    """Return a ResNet18 with the stem for small images.

    Example:
        >>> sum(p.numel() for p in resnet18((3, 32, 32), 10).parameters())
        11173962
    """
    return ResNet(
        input_shape, num_classes, block=BasicBlock, depths=(2, 2, 2, 2), stem=stem, init=init, name="resnet18"
    )


def resnet34(input_shape: Sequence[int], num_classes: int, *, stem: str = "cifar", init: str = "torch") -> ResNet:
    """Return a ResNet34 with the stem for small images."""
    return ResNet(
        input_shape, num_classes, block=BasicBlock, depths=(3, 4, 6, 3), stem=stem, init=init, name="resnet34"
    )


def resnet50(input_shape: Sequence[int], num_classes: int, *, stem: str = "imagenet", init: str = "fan-out") -> ResNet:
    """Return a ResNet50 as in torchvision, for images of 224×224 such as those of ImageNet and WebVision."""
    return ResNet(
        input_shape, num_classes, block=Bottleneck, depths=(3, 4, 6, 3), stem=stem, init=init, name="resnet50"
    )


def _conv(channels: int, planes: int, side: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(channels, planes, side, stride=stride, padding=side // 2, bias=False)


register("resnet18", resnet18, summary="ResNet18 with a 3×3 stem, for small images", channels_last=True)
register(
    "resnet34",
    resnet34,
    summary="ResNet34 with a 3×3 stem, for small images; most noisy-label papers on CIFAR",
    channels_last=True,
)
register(
    "resnet50",
    resnet50,
    summary="ResNet50 as in torchvision, for images of 224×224 (ImageNet, WebVision)",
    channels_last=True,
)
