"""Two networks that are trained at the same time."""

from __future__ import annotations

from torch import nn
from torch.optim import Optimizer

from postmax.methods.method import Setup


def two_networks(setup: Setup) -> tuple[tuple[nn.Module, nn.Module], tuple[Optimizer, Optimizer]]:
    """Return two networks with different random weights, and an optimiser for each."""
    networks = setup.network(), setup.network()
    first, second = (
        setup.optimiser(list(network.parameters()), name)
        for network, name in zip(networks, ("first", "second"), strict=True)
    )
    return networks, (first, second)
