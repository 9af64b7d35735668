"""Views: what is done to the rows of a batch, by name.

* "none" is normalisation alone.
* "weak" is what a data set is usually trained with, such as a random crop and flip.
* "strong" is RandAugment and cutout on top of it.
* "policy" is AutoAugment and cutout on top of it.
* "contrast" is that of contrastive learning: a resized crop, a flip and other colours.

Features have no crop, flip or colours. Their views "none" and "weak" are the rows themselves; in the other views some
features are dropped and all get a little noise. A method that compares several views of the same rows asks for them in
one call: `batches.epoch(0, views=("weak", "strong"))`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from postmax.data.augment import Augment
from postmax.data.auto_augment import AutoAugment
from postmax.data.catalogue import usual_augmentation
from postmax.data.contrast import ContrastAugment
from postmax.data.dataset import Statistics
from postmax.data.feature_views import DropAndAddNoise
from postmax.data.strong import StrongAugment
from postmax.registry import unknown_name

Augmentation = Callable[[Tensor, torch.Generator], Tensor]
AugmentKind = Literal["auto", "none", "crop", "crop-flip", "shift-flip"]
VIEW_NAMES = ("none", "weak", "strong", "policy", "contrast")

_CROP_AND_FLIP = Augment(padding=4)
_SHIFT_AND_FLIP = Augment(padding=2, padding_mode="reflect", flip="alternate")
_OF_FEATURES = {
    "strong": DropAndAddNoise(dropped=0.2, noise=0.1),
    "policy": DropAndAddNoise(dropped=0.2, noise=0.1),
    "contrast": DropAndAddNoise(dropped=0.3, noise=0.2),
}


@dataclass(frozen=True)
class Views:
    """The views of a data set.

    Args:
        weak: The weak augmentation with the statistics of the data set. None for features, which have views of their
            own: see `DropAndAddNoise`. With None, images stay as they are in every view.

    Example:
        >>> views = Views(Augment(padding=4, cutout=8))
        >>> views["none"].random, views["weak"].cutout, views["strong"].operations
        (False, 8, 2)
        >>> Views()["strong"]
        DropAndAddNoise(dropped=0.2, noise=0.1)
    """

    weak: Augment | None = None

    def __getitem__(self, name: str) -> Augmentation:
        """Return the augmentation of this name, one of `VIEW_NAMES`.

        Raises:
            InputError: If the name is another one.
        """
        if name not in VIEW_NAMES:
            raise unknown_name("view", name, VIEW_NAMES)
        if self.weak is None:
            return _OF_FEATURES.get(name, _unchanged)
        weak = self.weak
        of_images: dict[str, Augmentation] = {
            "none": weak.evaluation(),
            "weak": weak,
            "strong": StrongAugment(weak),
            "policy": AutoAugment(weak),
            "contrast": ContrastAugment(weak),
        }
        return of_images[name]

    @classmethod
    def of(
        cls, usual: Augment | None, statistics: Statistics | None, kind: AugmentKind = "auto", cutout: int = 0
    ) -> Views:
        """Return the views of images.

        Args:
            usual: What the data set is usually trained with; None for no augmentation.
            statistics: The channel statistics to normalise with.
            kind: "auto" is the usual augmentation, "none" is normalisation alone, "crop" is a random crop, "crop-flip"
                is a random crop and flip. The size of the crop is the usual one, or that for CIFAR if there is none.
                "shift-flip" is for short training: a shift by up to two pixels, with reflected edges, and a mirror
                image in every other epoch.
            cutout: Side of the blanked square in the weak view; 0 for none.
        """
        if kind == "none" or (kind == "auto" and usual is None):
            return cls(replace(Augment.none(statistics), cutout=cutout, random=cutout > 0))
        if kind == "shift-flip":
            return cls(replace(_SHIFT_AND_FLIP, cutout=cutout, statistics=statistics))
        weak = usual or _CROP_AND_FLIP
        flip = weak.flip if kind == "auto" else kind == "crop-flip"
        return cls(replace(weak, flip=flip, cutout=cutout, statistics=statistics))


def views_for(name: str | None, statistics: Statistics | None, kind: AugmentKind = "auto", cutout: int = 0) -> Views:
    """Return the views of the images of a registered data set.

    Args:
        name: The name of the data set; None for data of your own, which has no usual augmentation.
        statistics: The channel statistics to normalise with.
        kind: See `Views.of`.
        cutout: Side of the blanked square in the weak view; 0 for none.

    Raises:
        InputError: If there is no data set of this name.

    Example:
        >>> views_for("cifar10", None)["weak"].padding, views_for(None, None)["weak"].random
        (4, False)
    """
    return Views.of(None if name is None else usual_augmentation(name), statistics, kind, cutout)


def _unchanged(rows: Tensor, generator: torch.Generator | None = None) -> Tensor:  # noqa: ARG001  (an Augmentation)
    return rows
