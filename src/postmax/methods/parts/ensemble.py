"""Several networks that answer together."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class MeanOutputs(nn.Module):
    """The mean of the outputs of several networks.

    The mean is taken of the outputs, before a loss turns them into a posterior, so it suits every loss.

    Example:
        >>> MeanOutputs([nn.Identity(), nn.Identity()])(torch.tensor([[1.0, 3.0]]))
        tensor([[1., 3.]])
    """

    def __init__(self, networks: Iterable[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the mean output (B, K) for inputs (B, …)."""
        return torch.stack([network(inputs) for network in self.networks]).mean(0)
