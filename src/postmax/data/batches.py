"""Batches of a data set: in memory on the device, or streamed, with the same rows in the same order either way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from contextlib import closing
from typing import NamedTuple

import torch
from torch import Tensor

from postmax.data.dataset import Dataset, Rows
from postmax.data.prefetch import read_ahead
from postmax.errors import InputError

Augmentation = Callable[[Tensor, torch.Generator], Tensor]


class Batch(NamedTuple):
    """Some rows of a data set.

    Attributes:
        inputs: What the network gets.
        labels: int64 (B,).
        rows: int64 (B,), row numbers in the data set; per-row state is kept under these numbers.
    """

    inputs: Tensor
    labels: Tensor
    rows: Tensor
    views: tuple[Tensor, ...] = ()


class Batches:
    """A data set, batch by batch and epoch by epoch.

    The order of an epoch and all its random numbers are a function of the seed and the number of the epoch. So a run
    that was killed goes on at an epoch with `batches.epoch(n)`, bit for bit and with no generator state to restore.
    `for batch in batches` runs epoch `next_epoch` (0 at first, then 1, 2, …).

    A tensor of inputs is put on the device once and stays there as it is (images as uint8). Other `Rows` are read a
    few batches ahead by two threads; their `__getitem__` must allow that.

    Args:
        dataset: What to go through.
        batch_size: Rows of a batch; the last of an epoch may have fewer.
        augment: From the rows as stored and a CPU generator to what the network gets, usually an `Augment`. By default
            the rows as they are.
        shuffle: A new random order each epoch; else the order of the data set.
        drop_last: Leave out the last batch of an epoch if it is short.
        seed: Any whole number.
        device: Where batches are wanted; by default where the tensor of inputs (else the labels) is.

    Raises:
        InputError: If the data set is empty, or an epoch would have no batch.

    Example:
        >>> dataset = Dataset("toy", torch.arange(5.0)[:, None], torch.tensor([0, 1, 0, 1, 1]), ("no", "yes"))
        >>> batches = Batches(dataset, 2, seed=1)
        >>> [batch.index.tolist() for batch in batches.epoch(7)] == [b.index.tolist() for b in batches.epoch(7)]
        True
        >>> len(batches), sorted(int(i) for batch in batches for i in batch.index)
        (3, [0, 1, 2, 3, 4])
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        *,
        augment: Augmentation | None = None,
        shuffle: bool = True,
        drop_last: bool = False,
        seed: int = 0,
        device: torch.device | str | None = None,
    ) -> None:
        if batch_size < 1:
            raise InputError(f"batch_size must be at least 1, got {batch_size}.")
        if len(dataset) == 0:
            raise InputError(f"{dataset.name} has no rows, so there are no batches of it.")
        if drop_last and len(dataset) < batch_size:
            raise InputError(
                f"{dataset.name} has {len(dataset)} rows, fewer than a batch of {batch_size}, and drop_last leaves "
                "out short batches: nothing would be left. Choose a smaller batch_size or drop_last=False."
            )
        self.dataset = dataset
        self.batch_size = batch_size
        self.augment = augment
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.seed = seed
        self.next_epoch = 0
        inputs = dataset.inputs
        home = inputs.device if isinstance(inputs, Tensor) else dataset.labels.device
        self.device = home if device is None else torch.device(device)
        self._inputs: Tensor | Rows = inputs.to(self.device).contiguous() if isinstance(inputs, Tensor) else inputs
        self._labels = dataset.labels.to(self.device)

    def __len__(self) -> int:
        """How many batches an epoch has."""
        return (len(self.dataset) + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size

    def __iter__(self) -> Generator[Batch, None, None]:
        number = self.next_epoch
        self.next_epoch += 1
        return self.epoch(number)

    def epoch(
        self,
        number: int,
        rows: Tensor | None = None,
        *,
        stream: str = "",
        views: tuple[str, ...] = ("weak",),
        size: int | None = None,
    ) -> Generator[Batch, None, None]:
        """The batches of one epoch, counted from 0."""
        if number < 0:
            raise InputError(f"epochs are counted from 0, got {number}.")
        generator = generator_for(self.seed, number, *([stream] if stream else []))
        chosen = torch.arange(len(self.dataset)) if rows is None else rows.cpu()
        order = chosen[torch.randperm(len(chosen), generator=generator)] if self.shuffle else chosen
        size = self.batch_size if size is None else size
        if self.drop_last:
            order = order[: len(order) // size * size]
        return self._batches(order, generator, views, size)

    def _batches(
        self, order: Tensor, generator: torch.Generator, views: tuple[str, ...], size: int
    ) -> Generator[Batch, None, None]:
        inputs = self._inputs
        read = self._gather(inputs, order, size) if isinstance(inputs, Tensor) else self._stream(inputs, order, size)
        with closing(read):
            for index, rows in read:
                made = tuple(rows if self.augment is None else self.augment(rows, generator) for _ in views)
                yield Batch(made[0], self._labels.index_select(0, index), index, made)

    def _gather(self, inputs: Tensor, order: Tensor, size: int) -> Generator[tuple[Tensor, Tensor], None, None]:
        for index in torch.split(order.to(self.device), size):
            yield index, inputs.index_select(0, index)

    def _stream(self, inputs: Rows, order: Tensor, size: int) -> Generator[tuple[Tensor, Tensor], None, None]:
        def read(index: Tensor) -> Tensor:
            rows = inputs[index]
            if len(rows) != len(index):
                raise InputError(f"{self.dataset.name}: {len(rows)} rows came back when {len(index)} were asked for.")
            return rows.pin_memory() if self.device.type == "cuda" else rows

        parts = torch.split(order, size)
        with closing(read_ahead(read, parts)) as ready:
            for index, rows in zip(parts, ready, strict=True):
                yield index.to(self.device, non_blocking=True), rows.to(self.device, non_blocking=True)


def generator_for(*key: int | str) -> torch.Generator:
    """A CPU generator for this key, such as a seed and an epoch; other keys give unrelated numbers.

    The key is hashed, because sums collide (seed 0 in epoch 1 would be seed 1 in epoch 0), and because torch's CPU
    generator heeds only the lower 32 bits of a seed.

    Example:
        >>> int(torch.randint(1000, (), generator=generator_for(0, 1)))
        333
    """
    digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:4], "little"))
