"""Operations on a whole batch of uint8 images, each image with a strength of its own.

Every operation takes images, uint8 (B, C, H, W) with one or three channels, and one number for each image, (B,), and
returns new uint8 images. The results are those of Pillow, to within one grey level where Pillow rounds; geometric
operations take the nearest pixel and fill with black, as Pillow does by default. `hue` rounds once,
at the end; Pillow also rounds hue and saturation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

ImageFunction = Callable[[Tensor, Tensor], Tensor]

# Pillow's weights of red, green and blue in a grey pixel, in units of 2⁻¹⁶.
_LUMA = (19595, 38470, 7471)
_FIXED_POINT = 1 << 16


def identity(images: Tensor, strength: Tensor) -> Tensor:  # noqa: ARG001  (every operation takes a strength)
    """Return the images as they are."""
    return images


def autocontrast(images: Tensor, strength: Tensor) -> Tensor:  # noqa: ARG001
    """Return the images with each channel stretched so that its darkest pixel is 0 and its brightest 255."""
    low = images.amin((2, 3)).double()[..., None]
    high = images.amax((2, 3)).double()[..., None]
    # 255 / tensor would be rounded twice: torch multiplies 255 by the reciprocal.
    scale = torch.full_like(low, 255) / (high - low)
    values = torch.arange(256, dtype=torch.float64, device=images.device)
    table = torch.where(high > low, (values * scale - low * scale).nan_to_num(), values)
    return _look_up(images, table.clamp(0, 255))


def equalize(images: Tensor, strength: Tensor) -> Tensor:  # noqa: ARG001
    """Return the images with each channel changed so that all grey levels occur about equally often."""
    counts = _histograms(images)
    values = torch.arange(256, device=images.device).expand_as(counts)
    brightest = torch.where(counts > 0, values, -1).amax(-1, keepdim=True)
    step = (counts.sum(-1, keepdim=True) - counts.gather(-1, brightest)) // 255
    below = counts.cumsum(-1) - counts
    table = torch.where(step > 0, (below + step // 2) // step.clamp_min(1), values)
    return _look_up(images, table.clamp(0, 255))


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    """Return the images with the upper `bits` of every pixel, 1 to 8; the other bits become 0."""
    mask = (0xFF << (8 - bits.long())) & 0xFF
    return images & _per_image(mask).to(torch.uint8)


def solarize(images: Tensor, threshold: Tensor) -> Tensor:
    """Return the images with all pixels at or above the threshold inverted."""
    return torch.where(images < _per_image(threshold), images, 255 - images)


def invert(images: Tensor, strength: Tensor) -> Tensor:  # noqa: ARG001
    """Return the negatives of the images."""
    return 255 - images


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    """Return the images blended with black: 0 is black, 1 the image itself."""
    return _blend(torch.zeros_like(images), images, factor)


def colour(images: Tensor, factor: Tensor) -> Tensor:
    """Return the images blended with their grey version: 0 is grey, 1 the image itself."""
    return _blend(_grey(images).expand_as(images), images, factor)


def grey(images: Tensor, strength: Tensor) -> Tensor:  # noqa: ARG001
    """Return the grey version of the images, with as many channels as before."""
    return _grey(images).expand_as(images)


def hue(images: Tensor, turn: Tensor) -> Tensor:
    """Return the images with their hue moved by this part of the colour wheel: 1/3 makes red pixels green.

    The largest and the smallest of the three channels of a pixel stay as they are. Grey images have no hue.
    """
    if images.shape[1] == 1:
        return images
    pixels = images.float()
    red, green, blue = pixels.unbind(1)
    largest, smallest = pixels.amax(1), pixels.amin(1)
    chroma = largest - smallest
    scale = 1 / chroma.clamp_min(1)  # a pixel without chroma is grey, whatever its hue
    sextant = torch.where(
        largest == red,
        (green - blue) * scale,
        torch.where(largest == green, 2 + (blue - red) * scale, 4 + (red - green) * scale),
    )
    sextant = sextant + 6 * turn.float().view(-1, 1, 1)
    # Every channel is the same function of the hue, a third of the wheel apart: a plateau, a slope, a valley, a slope.
    places = torch.stack([(sextant + start) % 6 for start in (5, 3, 1)], 1)
    depth = torch.minimum(places, 4 - places).clamp(0, 1)
    return (largest[:, None] - chroma[:, None] * depth + 0.5).clamp(0, 255).to(torch.uint8)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Return the images blended with a flat image of their mean grey: 0 is flat, 1 the image itself."""
    mean = (_grey(images).double().mean((1, 2, 3)) + 0.5).floor()
    return _blend(_per_image(mean).to(torch.uint8).expand_as(images), images, factor)


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """Return the images blended with a smoothed version: 0 is smooth, 1 the image itself."""
    channels = images.shape[1]
    kernel = torch.ones(3, 3, device=images.device)
    kernel[1, 1] = 5
    kernel = (kernel / 13).expand(channels, 1, 3, 3)
    smooth = images.clone()  # the outermost pixels stay as they are
    if min(images.shape[2:]) > 2:
        inner = F.conv2d(images.float(), kernel, groups=channels)
        smooth[:, :, 1:-1, 1:-1] = (inner + 0.5).clamp(0, 255).to(torch.uint8)
    return _blend(smooth, images, factor)


def rotate(images: Tensor, degrees: Tensor) -> Tensor:
    """Return the images turned counter-clockwise about their middle."""
    angle = -degrees.double() * (math.pi / 180)
    cos, sin = angle.cos(), angle.sin()
    height, width = images.shape[2:]
    x, y = width / 2, height / 2
    return _affine(images, (cos, sin, x - cos * x - sin * y, -sin, cos, y + sin * x - cos * y))


def shear_x(images: Tensor, factor: Tensor) -> Tensor:
    """Return the images with each row moved left by `factor` times its distance from the top."""
    one, zero, factor = torch.ones_like(factor), torch.zeros_like(factor), factor.double()
    return _affine(images, (one, factor, zero, zero, one, zero))


def shear_y(images: Tensor, factor: Tensor) -> Tensor:
    """Return the images with each column moved up by `factor` times its distance from the left."""
    one, zero, factor = torch.ones_like(factor), torch.zeros_like(factor), factor.double()
    return _affine(images, (one, zero, zero, factor, one, zero))


def translate_x(images: Tensor, share: Tensor) -> Tensor:
    """Return the images moved left by this share of their width."""
    one, zero = torch.ones_like(share), torch.zeros_like(share)
    return _affine(images, (one, zero, share.double() * images.shape[3], zero, one, zero))


def translate_y(images: Tensor, share: Tensor) -> Tensor:
    """Return the images moved up by this share of their height."""
    one, zero = torch.ones_like(share), torch.zeros_like(share)
    return _affine(images, (one, zero, zero, zero, one, share.double() * images.shape[2]))


class Operation(NamedTuple):
    """An operation with the range of its strength.

    Attributes:
        apply: The operation.
        low: The strength at magnitude 0.
        high: The strength at magnitude 1.
        signed: Whether the strength is negative for half of the images.
        whole: Whether the strength is a whole number.
        middle: What the strength is added to: 1 for a factor that makes more or less of something.

    Example:
        >>> change = Operation(brightness, 0, 0.9, signed=True, middle=1)
        >>> change.strength(torch.tensor([0.0, 1.0, 1.0]), torch.tensor([0, 0, 1])).tolist()
        [1.0, 1.9, 0.09999999999999998]
    """

    apply: ImageFunction
    low: float = 0.0
    high: float = 0.0
    signed: bool = False
    whole: bool = False
    middle: float = 0.0

    def strength(self, magnitude: Tensor, negative: Tensor) -> Tensor:
        """Return the strength for each magnitude from 0 to 1, in float64; `negative` is 1 where the sign is minus."""
        strength = self.low + (self.high - self.low) * magnitude.double()
        if self.whole:
            strength = strength.floor()
        if self.signed:
            strength = strength * (1 - 2 * negative)
        return strength + self.middle


# The operations and ranges of FixMatch (Sohn et al. 2020), whose RandAugment semi-supervised methods use.
OPERATIONS: dict[str, Operation] = {
    "identity": Operation(identity),
    "autocontrast": Operation(autocontrast),
    "equalize": Operation(equalize),
    "posterize": Operation(posterize, 4, 8, whole=True),
    "solarize": Operation(solarize, 0, 256, whole=True),
    "brightness": Operation(brightness, 0.05, 0.95),
    "colour": Operation(colour, 0.05, 0.95),
    "contrast": Operation(contrast, 0.05, 0.95),
    "sharpness": Operation(sharpness, 0.05, 0.95),
    "rotate": Operation(rotate, 0, 30, signed=True),
    "shear_x": Operation(shear_x, 0, 0.3, signed=True),
    "shear_y": Operation(shear_y, 0, 0.3, signed=True),
    "translate_x": Operation(translate_x, 0, 0.3, signed=True),
    "translate_y": Operation(translate_y, 0, 0.3, signed=True),
}


def _per_image(numbers: Tensor) -> Tensor:
    return numbers.view(-1, 1, 1, 1)


def _histograms(images: Tensor) -> Tensor:
    """Return (B, C, 256), how often each grey level occurs in each channel of each image."""
    count, channels = images.shape[:2]
    place = torch.arange(count * channels, device=images.device).view(count, channels, 1) * 256
    found = torch.bincount((images.flatten(2) + place).flatten(), minlength=count * channels * 256)
    return found.view(count, channels, 256)


def _look_up(images: Tensor, table: Tensor) -> Tensor:
    """Replace each pixel by the entry of its channel's table (B, C, 256)."""
    return table.to(torch.uint8).gather(2, images.flatten(2).long()).view_as(images)


def _grey(images: Tensor) -> Tensor:
    """Return (B, 1, H, W): the grey version of images; grey images are their own."""
    if images.shape[1] == 1:
        return images
    red, green, blue = (images[:, channel, None].int() * weight for channel, weight in enumerate(_LUMA))
    return ((red + green + blue).add_(1 << 15) >> 16).to(torch.uint8)


def _blend(degenerate: Tensor, images: Tensor, factor: Tensor) -> Tensor:
    """Return degenerate + factor·(images − degenerate), cut off at 0 and 255 and rounded down as Pillow does."""
    start, share = degenerate.float(), _per_image(factor).float()
    return (start + share * (images.float() - start)).clamp_(0, 255).to(torch.uint8)


def _affine(images: Tensor, matrix: tuple[Tensor, ...]) -> Tensor:
    """Return images whose pixel (x, y) is the one at (a·x + b·y + c, d·x + e·y + f) before; black outside.

    The arithmetic has 16 binary digits after the point, as in Pillow, so that the same pixels are taken.
    """
    a, b, c, d, e, f = (numbers.double() for numbers in matrix)
    height, width = images.shape[2:]
    x = torch.arange(width, device=images.device)
    y = torch.arange(height, device=images.device)[:, None]

    def place(along_x: Tensor, along_y: Tensor, start: Tensor) -> Tensor:
        """Return the coordinate of every pixel before, (B, H, W)."""
        numbers = (along_x, along_y, start + along_x * 0.5 + along_y * 0.5)
        step_x, step_y, first = ((n * _FIXED_POINT + 0.5).floor().long()[:, None, None] for n in numbers)
        return (first + step_x * x + step_y * y) >> 16

    column, row = place(a, b, c), place(d, e, f)
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    index = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).flatten(1)[:, None]
    taken = images.flatten(2).gather(2, index.expand(-1, images.shape[1], -1)).view_as(images)
    return taken * inside[:, None]
