"""Views for contrastive learning: a random part of the image at full size, with other colours (Chen et al., 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from postmax.data import image_operations as image
from postmax.data.augment import Augment, image_shape
from postmax.data.feature_views import are_features
from postmax.data.image_operations import Operation
from postmax.data.image_policy import Policy, apply_policy
from postmax.errors import InputError

# What SimCLR does to colours. The first four after the identity are the colour jitter.
COLOUR_OPERATIONS: dict[str, Operation] = {
    "identity": Operation(image.identity),
    "brightness": Operation(image.brightness, 0.6, 1.4),
    "contrast": Operation(image.contrast, 0.6, 1.4),
    "colour": Operation(image.colour, 0.6, 1.4),
    "hue": Operation(image.hue, -0.1, 0.1),
    "grey": Operation(image.grey),
}
_GREY = list(COLOUR_OPERATIONS).index("grey")
_JITTERS = _GREY - 1


class Boxes(NamedTuple):
    """The part of each image that is enlarged to the size of the result, (B,) each.

    Attributes:
        top: Where the part begins, as a share of the height of the image.
        left: Where it begins, as a share of the width.
        height: Its height, as a share of that of the image.
        width: Its width, as a share of that of the image.
        flip: 1 where the part is mirrored left to right.
    """

    top: Tensor
    left: Tensor
    height: Tensor
    width: Tensor
    flip: Tensor


@dataclass(frozen=True)
class ContrastAugment:
    """The augmentation of SimCLR for small images: a resized crop, a flip, colour jitter and grey; normalised.

    * A random part of each image is enlarged to the size of the result. Its shape, relative to that of the image, is
      drawn first; its area is drawn between the least one and the largest one that fits.
    * It is mirrored with probability one half, if the weak view mirrors images at all.
    * Colour jitter changes brightness, contrast and saturation by factors from 0.6 to 1.4 and turns the hue by up to a
      tenth of the colour wheel, in a random order.
    * Some images become grey.

    Every image draws its own numbers. Images with one channel have no colour, so only their brightness and contrast
    change. Features, float (B, d), are returned as they are.

    Args:
        weak: The size of the window, the statistics, and whether images are mirrored.
        least_area: The smallest part of an image, as a share of its area.
        most_stretched: The largest ratio of the two sides of a part, relative to those of the image.
        jittered: The probability of colour jitter.
        greyed: The probability of grey.

    Raises:
        InputError: If a number is outside its range.

    Example:
        >>> images = torch.zeros(5, 3, 32, 32, dtype=torch.uint8)
        >>> ContrastAugment(Augment())(images, torch.Generator().manual_seed(0)).shape
        torch.Size([5, 3, 32, 32])
    """

    weak: Augment
    least_area: float = 0.2
    most_stretched: float = 4 / 3
    jittered: float = 0.8
    greyed: float = 0.2

    def __post_init__(self) -> None:
        if not (0 <= self.jittered <= 1 and 0 <= self.greyed <= 1):
            raise InputError(
                f"jittered and greyed are probabilities from 0 to 1, got {self.jittered} and {self.greyed}."
            )
        if not (self.most_stretched >= 1 and 0 < self.least_area <= 1 / self.most_stretched):
            raise InputError(
                "a part of the least area must fit into the image also when it is stretched most: choose "
                "most_stretched from 1 on and least_area above 0, up to 1 / most_stretched; "
                f"got {self.most_stretched} and {self.least_area}."
            )

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw and apply. Without a generator the numbers come from torch's global one."""
        if are_features(images):
            return images
        count, _, _, _ = image_shape(images)
        return self.apply(images, self.draw_boxes(count, generator), self.draw_colours(count, generator))

    def draw_boxes(self, count: int, generator: torch.Generator | None = None) -> Boxes:
        """Return random parts of `count` images, on the device of the generator."""
        device = None if generator is None else generator.device
        shape, area, top, left = torch.rand(4, count, generator=generator, device=device)
        stretch = ((2 * shape - 1) * math.log(self.most_stretched)).exp()
        largest = torch.minimum(stretch, 1 / stretch)
        area = self.least_area + (largest - self.least_area) * area
        height, width = (area / stretch).sqrt().clamp(max=1), (area * stretch).sqrt().clamp(max=1)
        flip = torch.randint(2, (count,), generator=generator, device=device) * bool(self.weak.flip)
        return Boxes(top * (1 - height), left * (1 - width), height, width, flip)

    def draw_colours(self, count: int, generator: torch.Generator | None = None) -> Policy:
        """Return random changes of colour for `count` images, on the device of the generator."""
        device = None if generator is None else generator.device
        order = torch.rand(_JITTERS, count, generator=generator, device=device).argsort(0) + 1
        magnitude = torch.rand(_JITTERS + 1, count, generator=generator, device=device)
        jittered, greyed = torch.rand(2, count, generator=generator, device=device)
        jitter, grey = order * (jittered < self.jittered), _GREY * (greyed < self.greyed)
        return Policy(torch.cat([jitter, grey[None]]), magnitude, torch.zeros_like(magnitude))

    def apply(self, images: Tensor, boxes: Boxes, colours: Policy) -> Tensor:
        """Return the images augmented as drawn, on the device of the images.

        Raises:
            InputError: If these are not uint8 images (B, C, H, W) with one or three channels.
        """
        _, _, height, width = image_shape(images)
        parts = resized_parts(images, boxes, *self.weak.window(height, width))
        return replace(self.weak, cutout=0).normalise(apply_policy(parts, colours, COLOUR_OPERATIONS))


def resized_parts(images: Tensor, boxes: Boxes, rows: int, columns: int) -> Tensor:
    """Return the boxes of uint8 images, resized to (B, C, rows, columns) with linear interpolation.

    Example:
        >>> image = torch.tensor([[0, 80], [0, 80]], dtype=torch.uint8).view(1, 1, 2, 2)
        >>> top, left, height, width, flip = torch.tensor([[0.0], [0.25], [0.5], [0.5], [0.0]])
        >>> resized_parts(image, Boxes(top, left, height, width, flip), 1, 4).tolist()
        [[[[10, 30, 50, 70]]]]
    """
    if len(images) == 0:
        return images.new_empty(0, images.shape[1], rows, columns)
    top, left, height, width, flip = (numbers.to(images.device, torch.float32)[:, None] for numbers in boxes)
    x = (torch.arange(columns, device=images.device) + 0.5) / columns
    y = (torch.arange(rows, device=images.device) + 0.5) / rows
    across = left + width * torch.where(flip > 0, 1 - x, x)
    down = top + height * y
    places = torch.stack(torch.broadcast_tensors(across[:, None, :], down[:, :, None]), 3)
    # grid_sample counts from −1 at one edge of the image to 1 at the other.
    taken = F.grid_sample(images.float(), 2 * places - 1, padding_mode="border", align_corners=False)
    return taken.add_(0.5).clamp_(0, 255).to(torch.uint8)
