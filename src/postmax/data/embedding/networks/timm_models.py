"""The networks of timm (PyTorch Image Models), which downloads their weights at first use."""

from __future__ import annotations

from postmax.data.embedding.catalogue import NETWORKS
from postmax.data.embedding.extractor import Extractor
from postmax.data.embedding.source import Source
from postmax.extras import need


def timm_network(name: str) -> Extractor:
    """Return a network of timm without its last layer.

    Raises:
        MissingDependency: If timm is not installed.
    """
    timm = need("timm", package="timm")
    network = timm.create_model(name, pretrained=True, num_classes=0)
    config = timm.data.resolve_model_data_config(network)
    return Extractor(
        name=f"timm:{name}",
        network=network,
        mean=tuple(255 * value for value in config["mean"]),
        std=tuple(255 * value for value in config["std"]),
        side=min(config["input_size"][1:]),
    )


NETWORKS.add(Source(timm_network, ("timm",), example="resnet18"), "timm", order=1)
