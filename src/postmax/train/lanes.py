"""Several seeds side by side: their batches stacked, their networks stacked.

A small network spends its time on the overhead of every call, not on arithmetic. Ten seeds in one call cost little
more than one. Every lane sees the rows, in the order, that its seed would see alone.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from postmax.data import Augmentation, Batches, Dataset, generator_for
from postmax.errors import InputError


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
                yield LaneBatch(batch.inputs[None], batch.labels[None], batch.index[None])
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
        if self.count == 1:
            self.network = networks[0]
            return
        if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in networks[0].modules()):
            raise InputError("networks with batch normalisation cannot be trained side by side; give one seed a run.")
        stacked, _ = stack_module_state(list(networks))
        # A parameter's name may have no dot, so it is kept apart from the place it is for.
        self.places = tuple(stacked)
        self.stacked = nn.ParameterList(nn.Parameter(stacked[place].detach()) for place in self.places)
        # The skeleton has no weights and is no submodule: it only says what to compute.
        self._skeleton = (copy.deepcopy(networks[0]).to("meta"),)
        self._call = vmap(self._one, randomness="different")

    def forward(self, inputs: Tensor) -> Tensor:
        """The logits of every lane."""
        if self.count == 1:
            logits: Tensor = self.network(inputs[0])
            return logits[None]
        self._skeleton[0].train(self.training)
        result: Tensor = self._call(tuple(self.stacked), inputs)
        return result

    def _one(self, parameters: tuple[Tensor, ...], inputs: Tensor) -> Tensor:
        logits: Tensor = functional_call(self._skeleton[0], dict(zip(self.places, parameters, strict=True)), (inputs,))
        return logits

    def lane_state(self, lane: int) -> dict[str, Tensor]:
        """The weights of one lane, under the names its network has for them."""
        if self.count == 1:
            return dict(self.network.state_dict())
        return {place: stack[lane].detach() for place, stack in zip(self.places, self.stacked, strict=True)}
