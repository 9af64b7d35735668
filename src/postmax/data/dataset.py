"""The data set that every reader returns: rows, labels, and the names of the classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from postmax.data.table_reading import TableReading
from postmax.errors import DataError
from postmax.row_names import INDICES, RowNames


class RowSource(Protocol):
    """Inputs that are read from disk when they are needed. A tensor in memory can be used in its place."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Tensor, /) -> Tensor: ...


@dataclass(frozen=True)
class RowSubset:
    """Some rows of a row source. Making a subset reads nothing.

    Attributes:
        source: Where the rows are read from.
        rows: (n,) the positions of the chosen rows in the source.
    """

    source: RowSource
    rows: Tensor

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Tensor, /) -> Tensor:
        return self.source[self.rows[index]]


@dataclass(frozen=True)
class Statistics:
    """Mean and standard deviation of each channel, for pixels in [0, 1]."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class Dataset:
    """Rows with labels.

    Attributes:
        name: Its name in messages and results.
        inputs: uint8 images (N, C, H, W) or float32 features (N, d): a tensor, or a `RowSource` that reads from disk.
        labels: int64 (N,), indices into `classes`. These are the labels to train on.
        classes: One name for each class.
        clean_labels: The true labels if they are known and differ from `labels`; for evaluation only.
        statistics: Channel statistics of the images, if they are published.
        table: How the columns were read, if the rows come from a table of your own.
        notes: What the reader noticed and a person should know, such as a feature that looks like a row number.
        rows: How messages call the rows. The rows of a subset are called by their index.
    """

    name: str
    inputs: Tensor | RowSource
    labels: Tensor
    classes: tuple[str, ...]
    clean_labels: Tensor | None = None
    statistics: Statistics | None = None
    table: TableReading | None = None
    notes: tuple[str, ...] = ()
    rows: RowNames = INDICES

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.labels):
            raise DataError(f"{self.name}: {len(self.inputs)} rows but {len(self.labels)} labels.")
        if len(self.labels) and not 0 <= int(self.labels.min()) <= int(self.labels.max()) < len(self.classes):
            raise DataError(f"{self.name}: labels must lie in 0…{len(self.classes) - 1}, one for each class.")
        if self.clean_labels is not None and len(self.clean_labels) != len(self.labels):
            raise DataError(f"{self.name}: {len(self.clean_labels)} clean labels for {len(self.labels)} rows.")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.classes)

    def with_labels(self, labels: Tensor | Sequence[int]) -> Dataset:
        """Return the same rows with other labels. The old labels become the clean ones, unless those are known."""
        clean = self.labels if self.clean_labels is None else self.clean_labels
        return replace(self, labels=torch.as_tensor(labels, dtype=torch.int64), clean_labels=clean)

    def subset(self, index: Tensor) -> Dataset:
        """Return the rows at `index` (positions or a mask), in this order. Rows on disk are not read."""
        if index.dtype == torch.bool:
            index = index.nonzero()[:, 0]
        inputs = self.inputs[index] if isinstance(self.inputs, Tensor) else RowSubset(self.inputs, index)
        clean = None if self.clean_labels is None else self.clean_labels[index]
        return replace(self, inputs=inputs, labels=self.labels[index], clean_labels=clean, rows=INDICES)
