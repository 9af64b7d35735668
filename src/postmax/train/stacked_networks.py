"""Several small networks as one, for seeds that are trained side by side.

A small network spends its time on the overhead of each call, not on arithmetic. Ten networks in one call take little
more time than one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from postmax.errors import InputError
from postmax.models import MLP


class StackedNetworks(nn.Module):
    """One network for each seed, called as one: from inputs (S, B, …) to logits (S, B, K).

    The networks must be chains of linear layers and elementwise functions. Each layer of all networks is one batched
    matrix product.

    Args:
        networks: Networks of the same shape. Their weights are copied.

    Raises:
        InputError: If the networks are not such chains.
    """

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        chains = [_chain(network) for network in networks]
        # A name with a dot cannot be a submodule's, so the names are kept beside the layers.
        self.names = tuple(chains[0])
        self.layers = nn.ModuleList(
            _Linears([chain[name] for chain in chains]) if isinstance(layer, nn.Linear) else layer
            for name, layer in chains[0].items()
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of every lane."""
        rows = inputs.flatten(2)
        for layer in self.layers:
            rows = layer(rows)
        return rows

    @property
    def biases(self) -> list[Tensor]:
        """The biases of all lanes. They cannot be told from weights by their dimensions."""
        return [layer.bias for layer in self.layers if isinstance(layer, _Linears)]

    @property
    def outputs(self) -> int:
        """How many outputs each network has."""
        return int(self.biases[-1].shape[-1])

    @property
    def flops(self) -> int:
        """The floating-point operations of one row in one lane, as `postmax.models.flops` counts them."""
        layers = [layer for layer in self.layers if isinstance(layer, _Linears)]
        return sum(2 * layer.weight[0].numel() for layer in layers)

    def lane_state(self, lane: int) -> dict[str, Tensor]:
        """Return the weights of one lane, under the names that its own network has for them."""
        state = {}
        for name, layer in zip(self.names, self.layers, strict=True):
            if isinstance(layer, _Linears):
                state[f"{name}.weight"] = layer.weight[lane].detach()
                state[f"{name}.bias"] = layer.bias[lane, 0].detach()
        return state


class _Linears(nn.Module):
    """A linear layer for each lane: from (S, B, d) to (S, B, k)."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.stack([layer.get_parameter("weight").detach() for layer in layers]))
        self.bias = nn.Parameter(torch.stack([layer.get_parameter("bias").detach()[None] for layer in layers]))

    def forward(self, rows: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, rows, self.weight.mT)


def _chain(network: nn.Module) -> dict[str, nn.Module]:
    """Return the layers of a network in their order, by name.

    Raises:
        InputError: If the network is not a chain of such layers. Then each seed must be a run of its own.
    """
    if not isinstance(network, (MLP, nn.Sequential)):
        raise InputError(
            "several seeds are trained side by side with the network mlp only: for others start one run for each seed."
        )
    leaves = {name: module for name, module in network.named_modules() if not list(module.children()) and name}
    if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in leaves.values()):
        raise InputError(
            "networks with batch normalisation cannot be trained side by side: start one run for each seed."
        )
    return leaves
