"""Batches of a data set that is in memory or is read from disk. Both give the same batches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from postmax.data.augment import Augment
from postmax.data.dataset import Dataset, RowSource
from postmax.data.prefetch import read_ahead
from postmax.data.shrinking import shrink
from postmax.data.views import VIEW_NAMES, Augmentation, Views
from postmax.errors import InputError


class Batch(NamedTuple):
    """Some rows of a data set.

    Attributes:
        inputs: What the network gets: the first view.
        labels: int64 (B,).
        rows: int64 (B,), the positions of these rows in the data set. State of each row is kept under these numbers.
        views: All requested views of the same rows, the first one included.
    """

    inputs: Tensor
    labels: Tensor
    rows: Tensor
    views: tuple[Tensor, ...]


class Batches:
    """A data set, batch by batch and epoch by epoch.

    The order of an epoch and all its random numbers are a function of the seed, the number of the epoch and the name of
    a stream. So a run that was killed continues at an epoch with `batches.epoch(n)`, bit for bit, without the state of
    a generator. `for batch in batches` runs epoch `next_epoch` (0 at first, then 1, 2, …).

    A tensor of inputs is put on the device once and stays there as it is (images as uint8). A `RowSource` is read a few
    batches ahead by two threads; its `__getitem__` must allow that.

    Args:
        dataset: The data set.
        batch_size: The number of rows in a batch; the last batch of an epoch may have fewer.
        augment: What is done to the rows: `Views`, an `Augment`, or a function from rows and a CPU generator to what
            the network gets. By default rows stay as they are, except features in the views "strong", "policy" and
            "contrast".
        views: The names of the views that `epoch` gives if it is not told otherwise.
        shuffle: A new random order in each epoch; otherwise the order of the data set.
        side_in: Gives the side to which images are shrunk in an epoch, from the number of the epoch; None for images as
            they are.
        drop_last: Leave out the last batch of an epoch if it is short.
        drop_single: Leave out the last batch of an epoch if it holds a single row and is not the only one: batch
            normalisation cannot use it.
        seed: Any whole number.
        device: Where batches are wanted; by default the device of the inputs, or of the labels if the inputs are not a
            tensor.

    Raises:
        InputError: If the data set is empty, an epoch would have no batch, or there is no view of this name.

    Example:
        >>> dataset = Dataset("toy", torch.arange(5.0)[:, None], torch.tensor([0, 1, 0, 1, 1]), ("no", "yes"))
        >>> batches = Batches(dataset, 2, seed=1)
        >>> [batch.rows.tolist() for batch in batches.epoch(7)] == [b.rows.tolist() for b in batches.epoch(7)]
        True
        >>> len(batches), sorted(int(i) for batch in batches for i in batch.rows)
        (3, [0, 1, 2, 3, 4])
        >>> sorted(int(i) for batch in batches.epoch(0, rows=torch.tensor([1, 4])) for i in batch.rows)
        [1, 4]
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        *,
        augment: Views | Augmentation | None = None,
        views: Sequence[str] = ("weak",),
        shuffle: bool = True,
        side_in: Callable[[int], int | None] = lambda _: None,
        drop_last: bool = False,
        drop_single: bool = False,
        seed: int = 0,
        device: torch.device | str | None = None,
    ) -> None:
        _check_size(batch_size)
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
        self.views = tuple(views)
        self.shuffle = shuffle
        self.side_in = side_in
        self.drop_last = drop_last
        self.drop_single = drop_single
        self.seed = seed
        self.next_epoch = 0
        inputs = dataset.inputs
        home = inputs.device if isinstance(inputs, Tensor) else dataset.labels.device
        self.device = home if device is None else torch.device(device)
        self._inputs: Tensor | RowSource = inputs.to(self.device).contiguous() if isinstance(inputs, Tensor) else inputs
        self._labels = dataset.labels.to(self.device)
        self._augmentations(self.views)

    def __len__(self) -> int:
        """Return the number of batches of an epoch over all rows."""
        return self.count(len(self.dataset))

    def count(self, rows: int, size: int | None = None) -> int:
        """Return the number of batches of an epoch over this number of rows."""
        size = size or self.batch_size
        single = self.drop_single and rows > size and rows % size == 1
        return (rows + (0 if self.drop_last or single else size - 1)) // size

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
        views: Sequence[str] | None = None,
        size: int | None = None,
    ) -> Generator[Batch, None, None]:
        """Return the batches of one epoch, counted from 0.

        Args:
            number: The number of the epoch.
            rows: The positions of the rows to go through, or a mask; by default all rows. An empty selection has no
                batches.
            stream: A name. Streams of other names have other orders and random numbers in the same epoch.
            views: The names of the views of each batch; by default those of the constructor.
            size: The number of rows in a batch; by default that of the constructor.

        Raises:
            InputError: If the number is negative, a row does not exist, or there is no view of this name.
        """
        if number < 0:
            raise InputError(f"epochs are counted from 0, got {number}.")
        size = self.batch_size if size is None else _check_size(size)
        chosen = None if rows is None else self._positions(rows)
        count = len(self.dataset) if chosen is None else len(chosen)
        generator = generator_for(self.seed, number, *([stream] if stream else []))
        order = torch.randperm(count, generator=generator) if self.shuffle else torch.arange(count)
        order = order[: self.count(count, size) * size]
        order = order if chosen is None else chosen[order]
        augmentations = self._augmentations(self.views if views is None else views)
        return self._batches(order, size, generator, augmentations, number)

    def _positions(self, rows: Tensor) -> Tensor:
        rows = rows.cpu()
        rows = rows.nonzero()[:, 0] if rows.dtype == torch.bool else rows.long()
        if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < len(self.dataset):
            raise InputError(
                f"rows are positions in {self.dataset.name}, 0…{len(self.dataset) - 1}; "
                f"got {int(rows.min())}…{int(rows.max())}."
            )
        return rows

    def _augmentations(self, names: Sequence[str]) -> tuple[Augmentation, ...]:
        """Return the augmentation of each named view."""
        if not names:
            raise InputError(f"a batch has at least one view; name one of {', '.join(VIEW_NAMES)}.")
        if self.augment is None or isinstance(self.augment, Views | Augment):
            known = self.augment if isinstance(self.augment, Views) else Views(self.augment)
            return tuple(known[name] for name in names)
        if set(names) != {"weak"}:
            raise InputError(
                f"a function as augmentation is the view 'weak'; for {', '.join(names)} give augment=Views(…)."
            )
        return (self.augment,) * len(names)

    def _batches(
        self,
        order: Tensor,
        size: int,
        generator: torch.Generator,
        augmentations: tuple[Augmentation, ...],
        number: int,
    ) -> Generator[Batch, None, None]:
        inputs = self._inputs
        read = self._gather(inputs, order, size) if isinstance(inputs, Tensor) else self._stream(inputs, order, size)
        with closing(read):
            for rows, stored in read:
                # Random numbers are drawn here, batch after batch and view after view, and not where rows are read. So
                # they do not depend on how long reading takes.
                found = (self._view(augment, stored, rows, generator, number) for augment in augmentations)
                views = tuple(shrink(view, self.side_in(number)) for view in found)
                yield Batch(views[0], self._labels.index_select(0, rows), rows, views)

    def _view(
        self, augment: Augmentation, stored: Tensor, rows: Tensor, generator: torch.Generator, number: int
    ) -> Tensor:
        """Return one view of some rows. Alternating flips follow from rows and epoch, whatever is drawn for them."""
        if not (isinstance(augment, Augment) and augment.flip == "alternate" and augment.random and stored.dim() == 4):
            return augment(stored, generator)
        flip = (self._first_flips[rows.cpu()] + number) % 2
        return augment.apply(stored, augment.draw(stored, generator)._replace(flip=flip))

    @cached_property
    def _first_flips(self) -> Tensor:
        """1 for each row that is mirrored in epoch 0."""
        return torch.randint(2, (len(self.dataset),), generator=generator_for(self.seed, "first flips"))

    def _gather(self, inputs: Tensor, order: Tensor, size: int) -> Generator[tuple[Tensor, Tensor], None, None]:
        for rows in _parts(order.to(self.device), size):
            yield rows, inputs.index_select(0, rows)

    def _stream(self, inputs: RowSource, order: Tensor, size: int) -> Generator[tuple[Tensor, Tensor], None, None]:
        def read(rows: Tensor) -> Tensor:
            stored = inputs[rows]
            if len(stored) != len(rows):
                raise InputError(f"{self.dataset.name}: {len(stored)} rows came back when {len(rows)} were requested.")
            return stored.pin_memory() if self.device.type == "cuda" else stored

        parts = _parts(order, size)
        with closing(read_ahead(read, parts)) as ready:
            for rows, stored in zip(parts, ready, strict=True):
                yield rows.to(self.device, non_blocking=True), stored.to(self.device, non_blocking=True)


def _parts(order: Tensor, size: int) -> tuple[Tensor, ...]:
    return torch.split(order, size) if len(order) else ()


def _check_size(batch_size: int) -> int:
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, got {batch_size}.")
    return batch_size


def generator_for(*key: int | str) -> torch.Generator:
    """Return a CPU generator for a key, such as a seed and an epoch. Other keys give unrelated numbers.

    The key is hashed. A sum of seed and epoch would give the same numbers for seed 0 in epoch 1 and seed 1 in epoch 0,
    and torch's CPU generator uses only the lower 32 bits of a seed.

    Example:
        >>> int(torch.randint(1000, (), generator=generator_for(0, 1)))
        333
    """
    digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:4], "little"))
