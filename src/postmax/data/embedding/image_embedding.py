"""How images become features, in a form that a saved model can keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from postmax.data.dataset import RowSource
from postmax.data.embedding.catalogue import opened_network
from postmax.data.embedding.extractor import Extractor, checked_images, features_of, images_at_once
from postmax.data.embedding.networks.efficientnet_lite import NAME
from postmax.data.embedding.probe import check_probe, probe_of
from postmax.data.image_files import ImageFiles, shorter_side
from postmax.errors import DataError, InputError

USUAL = NAME
# Enlarging small images beyond this gains accuracy, but takes four times as long (docs/embedding.md). That is worth it
# for few images.
_USUAL_FACTOR, _FEW_IMAGES = 3.5, 10_000
_SMALLEST_SIDE, _STEP, _LOOKED_AT = 112, 16, 32


@dataclass(frozen=True)
class ImageEmbedding:
    """A frozen network, and the size to which images are brought before it gets them.

    Attributes:
        model: The name of the network, such as `efficientnet-lite0` or `timm:resnet18`.
        side: The side of the squares that it gets.
        dims: How many features an image has.
        probe: Some features of a fixed picture. With them a network with other weights is noticed.
    """

    model: str
    side: int
    dims: int
    probe: tuple[float, ...] = ()

    def shape(self, image: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002  (it is the same for all images)
        """Return the shape of the features of one image."""
        return (self.dims,)

    def __call__(self, images: Tensor) -> Tensor:
        """Return the features (N, dims), float32, of uint8 images (N, 1 or 3, H, W), on their device.

        Raises:
            InputError: If the network cannot be loaded, or is not the one that the embedding was made with.
            MissingDependency: If its package is not installed.
        """
        extractor = self.on(images.device)
        if not len(images):
            return torch.zeros(0, self.dims, device=images.device)
        parts = images.split(images_at_once(self.side))
        return torch.cat([features_of(extractor, part, self.side) for part in parts])

    def on(self, device: torch.device) -> Extractor:
        """Return the network on a device. It is loaded, and checked, once."""
        return _checked(self, device)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a JSON file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ImageEmbedding:
        """Return what `to_dict` described. Nothing is loaded yet."""
        return cls(str(content["model"]), int(content["side"]), int(content["dims"]), tuple(content["probe"]))


def image_embedding(images: Tensor | RowSource, model: str = USUAL, side: int | None = None) -> ImageEmbedding:
    """Return an embedding that suits these images.

    Args:
        images: uint8 images (N, C, H, W), or image files. Of files only the sizes are read.
        model: The name of a network.
        side: The side to which images are brought. By default it is that of the network's training, or less for more
            than 10 000 small images, if the network can take them.

    Raises:
        InputError: If there is no such network, if it cannot be loaded, or if it cannot take images of this side.
        MissingDependency: If its package is not installed.
    """
    extractor = _loaded(model, torch.device("cpu"))
    side = suitable_side(extractor, _shorter_side(images), len(images)) if side is None else side
    if side < 1:
        raise InputError(f"the side of images is at least 1 pixel, not {side}.")
    features = features_of(extractor, _picture(side), side)[0]
    return ImageEmbedding(extractor.name, side, len(features), probe_of(features.numpy()))


def suitable_side(extractor: Extractor, shorter: int, count: int) -> int:
    """Return the side to which so many images with this shorter side are brought.

    Example:
        >>> from torch import nn
        >>> free = Extractor("free", nn.Flatten(), (0.0,) * 3, (1.0,) * 3, side=224, fixed=False)
        >>> [suitable_side(free, shorter, count=50_000) for shorter in (8, 32, 48, 64, 1000)]
        [112, 112, 160, 224, 224]
        >>> suitable_side(free, 32, count=1_000)
        224
    """
    if extractor.fixed or count <= _FEW_IMAGES:
        return extractor.side
    enlarged = int(_USUAL_FACTOR * shorter) // _STEP * _STEP
    return min(extractor.side, max(_SMALLEST_SIDE, enlarged))


def _shorter_side(images: Tensor | RowSource) -> int:
    if not len(images):
        raise InputError("there are no images to embed.")
    if isinstance(images, ImageFiles):
        places = torch.linspace(0, len(images) - 1, min(len(images), _LOOKED_AT)).long().unique().tolist()
        sides = sorted(_sides_of([images.paths[place] for place in places]) if images.size is None else [images.size])
        return sides[len(sides) // 2]
    return min(checked_images(images[torch.tensor([0])]).shape[2:])


def _sides_of(paths: list[str]) -> list[int]:
    """Return the shorter sides of the images that can be read. If none can, the error of the last one is raised."""
    sides = []
    for path in paths:
        try:
            sides.append(shorter_side(path))
        except DataError:
            if path == paths[-1] and not sides:
                raise
    return sides


def _picture(side: int) -> Tensor:
    """Return one picture that is always the same: slanted stripes, of another width in each channel."""
    row, column = torch.arange(side)[:, None], torch.arange(side)[None]
    return torch.stack([(3 * row + 5 * column) * (channel + 1) // 4 % 256 for channel in range(3)]).byte()[None]


@lru_cache(maxsize=2)
def _loaded(model: str, device: torch.device) -> Extractor:
    # Moving a network changes it, so each device has one of its own.
    return opened_network(model).on(device)


@lru_cache(maxsize=4)
def _checked(embedding: ImageEmbedding, device: torch.device) -> Extractor:
    extractor = _loaded(embedding.model, device)
    if embedding.probe:
        found = features_of(extractor, _picture(embedding.side).to(device), embedding.side)[0]
        check_probe(embedding.model, embedding.probe, probe_of(found.cpu().numpy()))
    return extractor
