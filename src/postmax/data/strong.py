"""Strong augmentation: crop and flip, then RandAugment with its own operations for each image, then cutout."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from postmax.data.augment import Augment, Draw
from postmax.data.feature_views import are_features
from postmax.data.image_operations import OPERATIONS
from postmax.data.image_policy import Policy, crop_change_and_blank
from postmax.errors import InputError


@dataclass(frozen=True)
class StrongAugment:
    """A random crop and flip, RandAugment and cutout of a batch of uint8 images; the result is normalised.

    RandAugment is that of FixMatch (Sohn et al. 2020): each image draws its own operations and their magnitudes.
    Features, float (B, d), are returned as they are.

    Args:
        weak: The crop, the flip and the statistics.
        operations: How many operations are applied to each image.
        cutout: Side of the blanked square; by default that of `weak`, or half the side of the image if that is 0.

    Raises:
        InputError: If a number is negative.

    Example:
        >>> images = torch.zeros(5, 3, 32, 32, dtype=torch.uint8)
        >>> StrongAugment(Augment())(images, torch.Generator().manual_seed(0)).shape
        torch.Size([5, 3, 32, 32])
    """

    weak: Augment
    operations: int = 2
    cutout: int | None = None

    def __post_init__(self) -> None:
        if self.operations < 0 or (self.cutout or 0) < 0:
            raise InputError(
                f"operations and cutout count operations and pixels; got {self.operations} and {self.cutout}."
            )

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw and apply. Without a generator the numbers come from torch's global one."""
        if are_features(images):
            return images
        draw = replace(self.weak, random=True).draw(images, generator)
        return self.apply(images, draw, self.draw(len(images), generator))

    def draw(self, count: int, generator: torch.Generator | None = None) -> Policy:
        """Return random operations for `count` images, on the device of the generator."""
        device = None if generator is None else generator.device
        shape = (self.operations, count)
        return Policy(
            torch.randint(len(OPERATIONS), shape, generator=generator, device=device),
            torch.rand(shape, generator=generator, device=device),
            torch.randint(2, shape, generator=generator, device=device),
        )

    def apply(self, images: Tensor, draw: Draw, policy: Policy) -> Tensor:
        """Return the images augmented as drawn, on the device of the images."""
        return crop_change_and_blank(images, self.weak, draw, policy, OPERATIONS, self.cutout)
