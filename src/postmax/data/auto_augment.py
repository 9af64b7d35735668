"""AutoAugment: crop and flip, then the operations that a search found to help on CIFAR-10, then cutout."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from postmax.data import image_operations as image
from postmax.data.augment import Augment, Draw
from postmax.data.feature_views import are_features
from postmax.data.image_operations import Operation
from postmax.data.image_policy import Policy, crop_change_and_blank
from postmax.errors import InputError

# The ranges of Cubuk et al. (2019). A sign is drawn wherever an operation can go two ways.
AUTO_OPERATIONS: dict[str, Operation] = {
    "identity": Operation(image.identity),
    "invert": Operation(image.invert),
    "autocontrast": Operation(image.autocontrast),
    "equalize": Operation(image.equalize),
    "posterize": Operation(image.posterize, 8.5, 4.5, whole=True),  # 8 to 4 bits; the half rounds to the nearest
    "solarize": Operation(image.solarize, 256, 0),
    "brightness": Operation(image.brightness, 0, 0.9, signed=True, middle=1),
    "colour": Operation(image.colour, 0, 0.9, signed=True, middle=1),
    "contrast": Operation(image.contrast, 0, 0.9, signed=True, middle=1),
    "sharpness": Operation(image.sharpness, 0, 0.9, signed=True, middle=1),
    "rotate": Operation(image.rotate, 0, 30, signed=True),
    "shear_y": Operation(image.shear_y, 0, 0.3, signed=True),
    "translate_x": Operation(image.translate_x, 0, 150 / 331, signed=True),
    "translate_y": Operation(image.translate_y, 0, 150 / 331, signed=True),
}

# The policy for CIFAR-10: pairs of (operation, probability, magnitude in ninths).
CIFAR10_POLICY: tuple[tuple[tuple[str, float, int], tuple[str, float, int]], ...] = (
    (("invert", 0.1, 0), ("contrast", 0.2, 6)),
    (("rotate", 0.7, 2), ("translate_x", 0.3, 9)),
    (("sharpness", 0.8, 1), ("sharpness", 0.9, 3)),
    (("shear_y", 0.5, 8), ("translate_y", 0.7, 9)),
    (("autocontrast", 0.5, 0), ("equalize", 0.9, 0)),
    (("shear_y", 0.2, 7), ("posterize", 0.3, 7)),
    (("colour", 0.4, 3), ("brightness", 0.6, 7)),
    (("sharpness", 0.3, 9), ("brightness", 0.7, 9)),
    (("equalize", 0.6, 0), ("equalize", 0.5, 0)),
    (("contrast", 0.6, 7), ("sharpness", 0.6, 5)),
    (("colour", 0.7, 7), ("translate_x", 0.5, 8)),
    (("equalize", 0.3, 0), ("autocontrast", 0.4, 0)),
    (("translate_y", 0.4, 3), ("sharpness", 0.2, 6)),
    (("brightness", 0.9, 6), ("colour", 0.2, 8)),
    (("solarize", 0.5, 2), ("invert", 0.0, 0)),
    (("equalize", 0.2, 0), ("autocontrast", 0.6, 0)),
    (("equalize", 0.2, 0), ("equalize", 0.6, 0)),
    (("colour", 0.9, 9), ("equalize", 0.6, 0)),
    (("autocontrast", 0.8, 0), ("solarize", 0.2, 8)),
    (("brightness", 0.1, 3), ("colour", 0.7, 0)),
    (("solarize", 0.4, 5), ("autocontrast", 0.9, 0)),
    (("translate_y", 0.9, 9), ("translate_y", 0.7, 9)),
    (("autocontrast", 0.9, 0), ("solarize", 0.8, 3)),
    (("equalize", 0.8, 0), ("invert", 0.1, 0)),
    (("translate_y", 0.7, 9), ("autocontrast", 0.9, 0)),
)
_PLACES, _PROBABILITIES, _MAGNITUDES = (
    torch.tensor(numbers)
    for numbers in (
        [[list(AUTO_OPERATIONS).index(name) for name, _, _ in pair] for pair in CIFAR10_POLICY],
        [[probability for _, probability, _ in pair] for pair in CIFAR10_POLICY],
        [[ninths / 9 for _, _, ninths in pair] for pair in CIFAR10_POLICY],
    )
)


@dataclass(frozen=True)
class AutoAugment:
    """A random crop and flip, the AutoAugment policy of CIFAR-10 and cutout of uint8 images; the result is normalised.

    Each image draws one of 25 pairs of operations (Cubuk et al., 2019). Each operation of the pair is applied with a
    probability of its own, and with a fixed magnitude. SOP+ (Liu et al., 2022) trains with it. The policy was searched
    with clean labels of CIFAR-10. Features, float (B, d), are returned as they are.

    Args:
        weak: The crop, the flip and the statistics.
        cutout: Side of the blanked square; by default that of `weak`, or half the side of the image if that is 0: 16
            for CIFAR.

    Raises:
        InputError: If the cutout is negative.

    Example:
        >>> images = torch.zeros(5, 3, 32, 32, dtype=torch.uint8)
        >>> AutoAugment(Augment())(images, torch.Generator().manual_seed(0)).shape
        torch.Size([5, 3, 32, 32])
    """

    weak: Augment
    cutout: int | None = None

    def __post_init__(self) -> None:
        if (self.cutout or 0) < 0:
            raise InputError(f"cutout counts pixels; got {self.cutout}.")

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw and apply. Without a generator the numbers come from torch's global one."""
        if are_features(images):
            return images
        draw = replace(self.weak, random=True).draw(images, generator)
        return self.apply(images, draw, self.draw(len(images), generator))

    def draw(self, count: int, generator: torch.Generator | None = None) -> Policy:
        """Return random operations for `count` images, on the device of the generator."""
        device = torch.device("cpu") if generator is None else generator.device
        pair = torch.randint(len(CIFAR10_POLICY), (count,), generator=generator, device=device)
        chance = torch.rand((2, count), generator=generator, device=device)
        negative = torch.randint(2, (2, count), generator=generator, device=device)
        places, probabilities, magnitudes = (
            table.to(device)[pair].T for table in (_PLACES, _PROBABILITIES, _MAGNITUDES)
        )
        return Policy(torch.where(chance < probabilities, places, 0), magnitudes, negative)  # 0 is the identity

    def apply(self, images: Tensor, draw: Draw, policy: Policy) -> Tensor:
        """Return the images augmented as drawn, on the device of the images."""
        return crop_change_and_blank(images, self.weak, draw, policy, AUTO_OPERATIONS, self.cutout)
