"""Batches of several seeds, stacked. Each seed is one *lane* of the stack.

Every lane has the rows, in the order, that its seed would have alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from postmax.data import Batches, Dataset, Views, generator_for
from postmax.errors import InputError


class LaneBatch(NamedTuple):
    """One batch of every lane.

    Attributes:
        inputs: (S, B, …), the rows as the networks get them.
        labels: (S, B), the labels.
        rows: (S, B), the row numbers in the data set of each lane.
    """

    inputs: Tensor
    labels: Tensor
    rows: Tensor


class LaneBatches:
    """The batches of one data set for each seed, epoch by epoch.

    A last batch with a single row is left out, because batch normalisation cannot use it.
    """

    def __init__(
        self,
        datasets: Sequence[Dataset],
        seeds: Sequence[int],
        batch_size: int,
        *,
        augment: Views | None = None,
        view: str = "weak",
        shuffle: bool = True,
        device: torch.device | str = "cpu",
    ) -> None:
        self.seeds = tuple(seeds)
        self.rows = len(datasets[0])
        self.batch_size = min(batch_size, self.rows)
        self.shuffle = shuffle
        self.used_rows = self.rows - (shuffle and self.rows > self.batch_size and self.rows % self.batch_size == 1)
        self._single: Batches | None = None
        if len(datasets) == 1:
            self._single = Batches(
                datasets[0],
                self.batch_size,
                augment=augment,
                views=(view,),
                shuffle=shuffle,
                drop_single=shuffle,
                seed=self.seeds[0],
                device=device,
            )
            return
        inputs = [dataset.inputs for dataset in datasets]
        if (augment is not None and augment.weak is not None) or not all(isinstance(rows, Tensor) for rows in inputs):
            raise InputError(
                "several seeds are trained side by side on features only: for images start one run for each seed."
            )
        if len({len(dataset) for dataset in datasets}) > 1:
            raise InputError(
                "several seeds are trained side by side only if all have the same number of rows: start one run for "
                "each seed."
            )
        self._inputs = torch.stack([rows for rows in inputs if isinstance(rows, Tensor)]).to(device)
        self._labels = torch.stack([dataset.labels for dataset in datasets]).to(device)
        self._lanes = torch.arange(len(datasets), device=device)[:, None]

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        return (self.used_rows + self.batch_size - 1) // self.batch_size

    def epoch(self, number: int) -> Iterator[LaneBatch]:
        """Yield the batches of an epoch, counted from 0."""
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
