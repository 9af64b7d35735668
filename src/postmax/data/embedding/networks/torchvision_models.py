"""The networks of torchvision, which downloads their weights at first use."""

from __future__ import annotations

from torch import nn

from postmax.data.embedding.catalogue import NETWORKS
from postmax.data.embedding.extractor import Extractor
from postmax.data.embedding.source import Source
from postmax.errors import InputError
from postmax.extras import need


def torchvision_network(name: str) -> Extractor:
    """Return a classifier of torchvision without its last layer, with its best weights.

    Raises:
        InputError: If the network has no layer that scores the classes.
        MissingDependency: If torchvision is not installed.
    """
    models = need("torchvision.models", package="torchvision")
    weights = models.get_model_weights(name).DEFAULT
    network = models.get_model(name, weights=weights)
    _without_scores(network, name, len(weights.meta["categories"]))
    preparation = weights.transforms()
    return Extractor(
        name=f"torchvision:{name}",
        network=network,
        mean=tuple(255 * value for value in preparation.mean),
        std=tuple(255 * value for value in preparation.std),
        side=preparation.crop_size[0],
    )


def _without_scores(network: nn.Module, name: str, classes: int) -> None:
    """Replace the last layer with one output for each class: its inputs are the features."""
    found = [
        (path, layer)
        for path, layer in network.named_modules()
        if isinstance(layer, nn.Linear) and layer.out_features == classes
    ]
    if not found:
        raise InputError(f"torchvision:{name} has no linear layer for its {classes} classes, so it gives no features.")
    parent, _, child = found[-1][0].rpartition(".")
    setattr(network.get_submodule(parent), child, nn.Identity())


NETWORKS.add(Source(torchvision_network, ("torchvision",), example="resnet18"), "torchvision", order=2)
