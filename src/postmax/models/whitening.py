"""A first layer that is computed from images instead of being learnt: it makes the pixels of a patch uncorrelated."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Directions in which patches hardly vary are noise of the camera. This keeps them from being enlarged without limit.
_LEAST_VARIANCE = 5e-4
# The patches of all images at once would need a gigabyte for 5,000 images of CIFAR. These are 500 of them.
_PIXELS_AT_ONCE = 500 * 32 * 32


class Whitening(nn.Module):
    """A frozen convolution whose outputs, over all patches of the images that it was fitted to, are uncorrelated.

    Each principal direction of the patches gives two outputs, one for each sign, so that an activation function after
    this layer loses nothing.

    Args:
        channels: The channels of the images.
        side: The side of a patch in pixels.

    Example:
        >>> layer = Whitening(3, 2)
        >>> layer.fit(torch.randn(100, 3, 8, 8))
        >>> layer(torch.zeros(5, 3, 8, 8)).shape
        torch.Size([5, 24, 7, 7])
    """

    filters: Tensor

    def __init__(self, channels: int, side: int = 2) -> None:
        super().__init__()
        size = channels * side * side
        self.register_buffer("filters", _filters(torch.eye(size), channels, side))

    @torch.no_grad()
    def fit(self, images: Tensor) -> None:
        """Compute the filters from images (B, C, H, W)."""
        channels, side = self.filters.shape[1:3]
        variances, directions = torch.linalg.eigh(_covariance(images.to(self.filters.device), side))
        # The sign of a direction is arbitrary. With its largest part positive it does not depend on how it is computed.
        largest = directions.gather(0, directions.abs().argmax(0, keepdim=True))
        scaled = directions * largest.sign() / (variances.clamp(min=0) + _LEAST_VARIANCE).sqrt()
        self.filters.copy_(_filters(scaled.T.flip(0), channels, side))

    def forward(self, images: Tensor) -> Tensor:
        """Return the outputs for every patch, without padding."""
        return F.conv2d(images, self.filters)


def _covariance(images: Tensor, side: int) -> Tensor:
    """Return the covariance (d, d) of all patches of some images, in double precision."""
    at_once = max(1, _PIXELS_AT_ONCE // images[0, 0].numel())
    parts = [part.float() for part in images.split(at_once)]
    mean = torch.stack([F.unfold(part, side).double().sum((0, 2)) for part in parts]).sum(0)
    count = len(images) * (images.shape[2] - side + 1) * (images.shape[3] - side + 1)
    products = []
    for part in parts:
        patches = F.unfold(part, side).double().transpose(1, 2).flatten(0, 1) - mean / count
        products.append(patches.T @ patches)
    return torch.stack(products).sum(0) / count


def _filters(directions: Tensor, channels: int, side: int) -> Tensor:
    filters = directions.reshape(-1, channels, side, side)
    return torch.cat([filters, -filters]).float()
