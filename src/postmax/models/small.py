"""A small network for small images, made for training on a CPU."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from postmax.errors import InputError
from postmax.models.catalogue import register
from postmax.models.initialisation import initialise
from postmax.models.network import Network
from postmax.models.shapes import check_classes, check_image, is_count

_HIDDEN = 256


class Small(Network):
    """Five convolutions, the first of which halves the image, then 256 units and the logits.

    Batch normalisation and ReLU follow every layer but the last:

        4×4 stride 2 → w, 3×3 → w, pool | 3×3 → 2w, 3×3 → 2w, pool | 3×3 → 4w | flatten, 256, K

    It needs 16 million operations for an image of 32×32; the 8-layer CNN needs 267 million. The first layer halves the
    image, so that later layers work on few pixels. The 256 units see the whole last map instead of its mean: they hold
    most of the weights, and need few operations. docs/models.md has the measurements behind this design.

    Args:
        input_shape: (channels, height, width), at least 8×8.
        num_classes: K.
        width: w. The number of operations grows with its square; 24 is better for very short training.
        init: One of `INITIALISATIONS`.

    Raises:
        InputError: If the rows are not images, the images are too small, or an argument has an impossible value.

    Example:
        >>> from postmax.models import flops
        >>> f"{flops(Small((3, 32, 32), 10), (3, 32, 32)):,}"
        '15,995,904'
    """

    def __init__(self, input_shape: Sequence[int], num_classes: int, *, width: int = 32, init: str = "torch") -> None:
        super().__init__()
        if not is_count(width):
            raise InputError(f"width counts the channels of the first layer, a whole number; got {width!r}.")
        channels, rows, columns = check_image("small", input_shape, least=8, instead="'mlp'")
        self.body = nn.Sequential(
            *_layer(nn.Conv2d(channels, width, 4, stride=2, padding=1, bias=False)),
            *_layer(_conv3x3(width, width)),
            nn.MaxPool2d(2),
            *_layer(_conv3x3(width, 2 * width)),
            *_layer(_conv3x3(2 * width, 2 * width)),
            nn.MaxPool2d(2),
            *_layer(_conv3x3(2 * width, 4 * width)),
        )
        flat = 4 * width * (rows // 8) * (columns // 8)
        self.hidden = nn.Sequential(nn.Linear(flat, _HIDDEN, bias=False), nn.BatchNorm1d(_HIDDEN), nn.ReLU())
        self.fc = nn.Linear(_HIDDEN, check_classes(num_classes))
        initialise(self, init)

    def features(self, inputs: Tensor) -> Tensor:
        """Return the 256 hidden units."""
        units: Tensor = self.hidden(self.body(inputs).flatten(1))
        return units


def _conv3x3(channels: int, wide: int) -> nn.Conv2d:
    return nn.Conv2d(channels, wide, 3, padding=1, bias=False)


def _layer(convolution: nn.Conv2d) -> list[nn.Module]:
    return [convolution, nn.BatchNorm2d(convolution.out_channels), nn.ReLU()]


register(
    "small", Small, summary="small CNN of ours for CPUs: a sixteenth of the arithmetic of cnn8", channels_last=True
)
