"""A first layer that is computed from images instead of being learnt: it makes the pixels of a patch uncorrelated."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Directions in which patches hardly vary are noise of the camera. This keeps them from being enlarged without limit.
_LEAST_VARIANCE = 5e-4


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
        patches = F.unfold(images.to(self.filters.device, torch.float32), side).transpose(1, 2).flatten(0, 1).double()
        patches = patches - patches.mean(0)
        variances, directions = torch.linalg.eigh(patches.T @ patches / len(patches))
        # The sign of a direction is arbitrary. With its largest part positive it is the same on every machine.
        largest = directions.gather(0, directions.abs().argmax(0, keepdim=True))
        scaled = directions * largest.sign() / (variances.clamp(min=0) + _LEAST_VARIANCE).sqrt()
        self.filters.copy_(_filters(scaled.T.flip(0), channels, side))

    def forward(self, images: Tensor) -> Tensor:
        """Return the outputs for every patch, without padding."""
        return F.conv2d(images, self.filters)


def _filters(directions: Tensor, channels: int, side: int) -> Tensor:
    filters = directions.reshape(-1, channels, side, side)
    return torch.cat([filters, -filters]).float()
