"""Several seeds side by side: their batches stacked, their networks stacked.

A small network spends its time on the overhead of every call, not on arithmetic. Ten seeds in one call cost little
more than one. Every lane sees the rows, in the order, that its seed would see alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from postmax.data import Augmentation, Batches, Dataset, generator_for
from postmax.errors import InputError
from postmax.models import MLP


class LaneBatch(NamedTuple):
    """One batch of every lane.

    Attributes:
        inputs: (S, B, …).
        labels: (S, B).
        rows: (S, B), positions in the data set of the lane.
    """

    inputs: Tensor
    labels: Tensor
    rows: Tensor


class LaneBatches:
    """The batches of one data set for each seed, epoch by epoch.

    An epoch whose last batch would hold a single row leaves that row out: batch normalisation cannot use it.
    """

    def __init__(
        self,
        datasets: Sequence[Dataset],
        seeds: Sequence[int],
        batch_size: int,
        *,
        augment: Augmentation | None = None,
        shuffle: bool = True,
        device: torch.device | str = "cpu",
    ) -> None:
        self.seeds = tuple(seeds)
        self.rows = len(datasets[0])
        self.batch_size = min(batch_size, self.rows)
        self.shuffle = shuffle
        drop_last = shuffle and self.rows > self.batch_size and self.rows % self.batch_size == 1
        self.used_rows = self.rows - drop_last
        self._single: Batches | None = None
        if len(datasets) == 1:
            self._single = Batches(
                datasets[0],
                self.batch_size,
                augment=augment,
                shuffle=shuffle,
                drop_last=drop_last,
                seed=self.seeds[0],
                device=device,
            )
            return
        inputs = [dataset.inputs for dataset in datasets]
        if augment is not None or not all(isinstance(rows, Tensor) for rows in inputs):
            raise InputError("several seeds are trained side by side on features only; for images give one seed a run.")
        if len({len(dataset) for dataset in datasets}) > 1:
            raise InputError("several seeds are trained side by side only where all have as many rows; give one a run.")
        self._inputs = torch.stack([rows for rows in inputs if isinstance(rows, Tensor)]).to(device)
        self._labels = torch.stack([dataset.labels for dataset in datasets]).to(device)
        self._lanes = torch.arange(len(datasets), device=device)[:, None]

    def __len__(self) -> int:
        """Batches in an epoch."""
        return (self.used_rows + self.batch_size - 1) // self.batch_size

    def epoch(self, number: int) -> Iterator[LaneBatch]:
        """The batches of an epoch, counted from 0."""
        if self._single is not None:
            for batch in self._single.epoch(number):
                yield LaneBatch(batch.inputs[None], batch.labels[None], batch.rows[None])
            return
        for rows in self._order(number).split(self.batch_size, dim=1):
            yield LaneBatch(self._inputs[self._lanes, rows], self._labels[self._lanes, rows], rows)

    def _order(self, number: int) -> Tensor:
        if not self.shuffle:
            return torch.arange(self.rows, device=self._inputs.device).expand(len(self.seeds), -1)
        orders = [torch.randperm(self.rows, generator=generator_for(seed, number)) for seed in self.seeds]
        return torch.stack(orders)[:, : self.used_rows].to(self._inputs.device)


class Lanes(nn.Module):
    """One network for each seed, called as one: (S, B, …) to (S, B, K)."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.count = len(networks)
        self.network = networks[0] if self.count == 1 else _SideBySide(networks)

    def forward(self, inputs: Tensor) -> Tensor:
        """The logits of every lane."""
        logits: Tensor = self.network(inputs[0])[None] if self.count == 1 else self.network(inputs)
        return logits

    def lane_state(self, lane: int) -> dict[str, Tensor]:
        """The weights of one lane, under the names its network has for them."""
        return self.network.lane_state(lane) if isinstance(self.network, _SideBySide) else self.network.state_dict()


class _SideBySide(nn.Module):
    """Networks that are a chain of linear layers and elementwise functions, each layer of all of them in one call."""

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
        rows = inputs.flatten(2)
        for layer in self.layers:
            rows = layer(rows)
        return rows

    def lane_state(self, lane: int) -> dict[str, Tensor]:
        """The weights of one lane, under the names its network has for them."""
        state = {}
        for name, layer in zip(self.names, self.layers, strict=True):
            if isinstance(layer, _Linears):
                state[f"{name}.weight"] = layer.weight[lane].detach()
                state[f"{name}.bias"] = layer.bias[lane, 0].detach()
        return state


class _Linears(nn.Module):
    """A linear layer for each lane: (S, B, d) to (S, B, k)."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.stack([layer.get_parameter("weight").detach() for layer in layers]))
        self.bias = nn.Parameter(torch.stack([layer.get_parameter("bias").detach()[None] for layer in layers]))

    def forward(self, rows: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, rows, self.weight.mT)


def _chain(network: nn.Module) -> dict[str, nn.Module]:
    """The layers of a network in their order, by name.

    Raises:
        InputError: If it is no such chain; then one seed has to be trained at a time.
    """
    if not isinstance(network, (MLP, nn.Sequential)):
        raise InputError(
            "several seeds are trained side by side with the network mlp only; for others give one seed a run."
        )
    leaves = {name: module for name, module in network.named_modules() if not list(module.children()) and name}
    if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in leaves.values()):
        raise InputError("networks with batch normalisation cannot be trained side by side; give one seed a run.")
    return leaves
