"""Views of features: some are dropped, and all get a little noise."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from postmax.errors import InputError


@dataclass(frozen=True)
class DropAndAddNoise:
    """An augmentation of features, float (B, d): some are set to 0, then normal noise is added to all of them.

    It is meant for standardised features: 0 is then the mean of a feature, and the noise is measured in its standard
    deviations. What is kept is not scaled up, so that it stays what the network sees without augmentation. Other rows,
    such as images, are returned as they are.

    Args:
        dropped: The probability with which a feature of a row is set to 0.
        noise: The standard deviation of the noise.

    Raises:
        InputError: If a number is outside its range.

    Example:
        >>> rows = DropAndAddNoise(dropped=0.2, noise=0)(torch.ones(1000, 50), torch.Generator().manual_seed(0))
        >>> rows.unique().tolist(), round(float(rows.mean()), 2)
        ([0.0, 1.0], 0.8)
    """

    dropped: float = 0.2
    noise: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.dropped <= 1:
            raise InputError(f"dropped is a probability from 0 to 1, got {self.dropped}.")
        if not 0 <= self.noise < float("inf"):
            raise InputError(f"noise is a standard deviation, a finite number from 0 on, got {self.noise}.")

    def __call__(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return changed rows on their device. Without a generator the numbers come from torch's global one."""
        if not are_features(rows):
            return rows
        device = rows.device if generator is None else generator.device
        dropped = torch.rand(rows.shape, generator=generator, device=device) < self.dropped
        noise = self.noise * torch.randn(rows.shape, generator=generator, device=device)
        return rows.masked_fill(dropped.to(rows.device), 0) + noise.to(rows)


def are_features(rows: Tensor) -> bool:
    """Return whether these rows are features, float (B, d), and not images."""
    return rows.dim() == 2 and rows.is_floating_point()
