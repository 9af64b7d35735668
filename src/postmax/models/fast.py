"""A network for small images that learns in few epochs, in the spirit of the speed records on CIFAR-10."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from postmax.errors import InputError
from postmax.models.catalogue import register
from postmax.models.network import Network
from postmax.models.shapes import check_classes, check_image, is_count
from postmax.models.whitening import Whitening

# The running statistics follow the last few batches, because the weights change quickly.
_MOMENTUM = 0.4
# Small first logits: all layers can then share one learning rate.
_SCALE = 1 / 9


class Fast(Network):
    """A frozen whitening layer and three blocks of two convolutions each, with w, 4w and 4w channels.

    A block halves the image after its first convolution. Batch normalisation, which has a shift but no scale, and GELU
    follow each convolution. The last map is reduced to its maximum:

        whiten 2×2 | 3×3 → w, pool, 3×3 → w | 3×3 → 4w, pool, 3×3 → 4w | 3×3 → 4w, pool, 3×3 → 4w | max, K

    Convolutions start as the identity as far as they can, so that signal and gradient pass all layers from the first
    step on. The whitening layer is computed from training images before the first step. Without `look_at` it passes
    pixels on as they are. docs/results/pixels.md has the measurements behind this design.

    Args:
        input_shape: (channels, height, width), at least 9×9.
        num_classes: K.
        width: w. The number of operations grows with its square.
        test_flips: Whether the network, in evaluation mode, answers with the mean of its logits for an image and for
            its mirror image. This is for images whose mirror image shows the same thing.
        test_shifts: Whether the network, in evaluation mode, also looks at the image shifted by one pixel to the upper
            left and to the lower right. Both together have the weight of the image itself.
        bias: Whether the last layer has a bias. A loss that looks at each class by itself, such as SL-PML, needs it to
            learn how probable a class is at all; softmax does not need it.

    Raises:
        InputError: If the rows are not images, the images are too small, or an argument has an impossible value.

    Example:
        >>> from postmax.models import flops
        >>> f"{flops(Fast((3, 32, 32), 10), (3, 32, 32)):,}"
        '66,132,544'
    """

    rows_before_training = 5000

    def __init__(
        self,
        input_shape: Sequence[int],
        num_classes: int,
        *,
        width: int = 32,
        test_flips: bool = False,
        test_shifts: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if not is_count(width):
            raise InputError(f"width counts the channels of the first block, a whole number; got {width!r}.")
        for name, value in (("test_flips", test_flips), ("test_shifts", test_shifts), ("bias", bias)):
            if not isinstance(value, bool):
                raise InputError(f"{name} is true or false; got {value!r}.")
        channels, _, _ = check_image("fast", input_shape, least=9, instead="'mlp'")
        self.test_flips, self.test_shifts = test_flips, test_shifts
        self.whitening = Whitening(channels)
        first = len(self.whitening.filters)
        wide = 4 * width
        self.blocks = nn.Sequential(_Block(first, width), _Block(width, wide), _Block(wide, wide))
        self.fc = nn.Linear(wide, check_classes(num_classes), bias=bias)

    def look_at(self, inputs: Tensor) -> None:
        """Compute the whitening layer from training images."""
        self.whitening.fit(inputs)

    def features(self, inputs: Tensor) -> Tensor:
        """Return the maximum of each channel of the last map, scaled."""
        # The logits are linear in the features, so the mean of the features gives the mean of the logits.
        found = self._with_mirror_image(inputs)
        if self.test_shifts and not self.training:
            height, width = inputs.shape[-2:]
            wider = F.pad(inputs, (1, 1, 1, 1), mode="reflect")
            shifted = (wider[..., at : at + height, at : at + width] for at in (0, 2))
            found = found / 2 + sum(self._with_mirror_image(images) for images in shifted) / 4
        return found

    def _with_mirror_image(self, inputs: Tensor) -> Tensor:
        found = self._maxima(inputs)
        if self.test_flips and not self.training:
            found = (found + self._maxima(inputs.flip(-1))) / 2
        return found

    def _maxima(self, inputs: Tensor) -> Tensor:
        maps: Tensor = self.blocks(F.gelu(self.whitening(inputs)))
        return maps.amax((2, 3)) * _SCALE


class _Block(nn.Module):
    """Convolution, pooling, normalisation, convolution, normalisation."""

    def __init__(self, channels: int, wide: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = _identity_like(channels, wide), _Shift(wide)
        self.conv2, self.norm2 = _identity_like(wide, wide), _Shift(wide)

    def forward(self, maps: Tensor) -> Tensor:
        # Pooling first leaves a quarter of the pixels to be normalised and activated.
        maps = F.gelu(self.norm1(F.max_pool2d(self.conv1(maps), 2)))
        return F.gelu(self.norm2(self.conv2(maps)))


class _Shift(nn.BatchNorm2d):
    """Batch normalisation with a shift that is learnt and no scale: the next convolution can scale."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, momentum=_MOMENTUM)
        del self.weight
        self.register_buffer("weight", torch.ones(channels))


def _identity_like(channels: int, wide: int) -> nn.Conv2d:
    """Return a 3×3 convolution that passes its inputs on in its first outputs; the other outputs are random."""
    convolution = nn.Conv2d(channels, wide, 3, padding=1, bias=False)
    nn.init.dirac_(convolution.weight.data[:channels])
    return convolution


register(
    "fast",
    Fast,
    summary="CNN for small images that learns in few epochs: frozen whitening, then three blocks",
    channels_last=True,
)
