"""Data as detectors see them: columns of numbers or text with labels, or images with labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from postmax.checking.hashing import image_hashes, row_hashes
from postmax.checking.values import name_rows
from postmax.data.columns import Columns
from postmax.data.number_text import Decimal
from postmax.data.problems import in_words
from postmax.row_names import INDICES, RowNames

_SHOWN = 20

Numbers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Examined:
    """Data to look at.

    Attributes:
        name: What messages call the data.
        columns: The columns: float64 with NaN for missing numbers, or text with None.
        codes: (N,) class indices.
        classes: The names of the classes.
        places: (N,) the place of each row in the data, counted from 0. Of large data only some rows are looked at.
        total: How many rows the data have.
        counts: How many rows of the data have each label, also of rows that are not looked at.
        label: The column of the labels, if they come from one.
        rows: How messages call the rows that are looked at.
        named: Whether the columns have names, with which a person can drop them.
        dropped: Columns that are dropped already.
        decimal: The sign before the decimals of numbers that are written as text.
        images: The images (N, C, H, W), if the data are images.
    """

    name: str
    columns: Columns
    codes: Codes
    classes: tuple[str, ...]
    places: Codes
    total: int
    counts: Mapping[str, int]
    label: str | None = None
    rows: RowNames = INDICES
    named: bool = True
    dropped: tuple[str, ...] = ()
    decimal: Decimal = "."
    images: Tensor | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def numbers(self) -> dict[str, Numbers]:
        """The columns of numbers."""
        return {name: values for name, values in self.columns.items() if values.dtype.kind == "f"}

    @cached_property
    def texts(self) -> dict[str, npt.NDArray[Any]]:
        """The columns of text."""
        return {name: values for name, values in self.columns.items() if values.dtype.kind != "f"}

    @cached_property
    def row_names(self) -> frozenset[str]:
        """The columns that seem to name or count the rows. Columns without names are never taken for that."""
        if not self.named:
            return frozenset()
        return frozenset(name for name, values in self.columns.items() if name_rows(name, values, self.total))

    @cached_property
    def features(self) -> dict[str, npt.NDArray[Any]]:
        """The columns that say something about a row: those that do not name it."""
        return {name: values for name, values in self.columns.items() if name not in self.row_names}

    @cached_property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """(N,) a number for the features of each row. Rows with equal features have equal numbers."""
        if self.images is not None:
            return image_hashes(self.images.numpy())
        return row_hashes(list(self.features.values()), len(self))

    def subset(self, index: Codes) -> Examined:
        """Return some of the rows, as if only these were looked at."""
        return replace(
            self,
            columns={name: values[index] for name, values in self.columns.items()},
            codes=self.codes[index],
            rows=self.rows.of(index.tolist()),
            places=self.places[index],
        )

    def some(self, rows: Sequence[int] | Codes) -> str:
        """Return what messages call some rows; of many the first five."""
        return self.rows.some(rows)

    def at(self, rows: Sequence[int] | Codes) -> tuple[int, ...]:
        """Return the places of the first of some rows in the data."""
        return tuple(int(self.places[row]) for row in rows[:_SHOWN])

    def called(self, column: str) -> str:
        """Return what messages call a column."""
        return f"column {column!r}" if self.named else f"column {column}"

    def without(self, columns: Sequence[str]) -> str:
        """Return the advice to leave columns out."""
        it = "it" if len(columns) == 1 else "them"
        if not self.named:
            return f"Leave {it} out."
        return f"To leave {it} out: {in_words({'drop': columns}, self.dropped)}"


def counted(codes: Codes, classes: Sequence[str]) -> dict[str, int]:
    """Return how many rows have each label.

    Example:
        >>> counted(np.array([0, 1, 1]), ["cat", "dog"])
        {'cat': 1, 'dog': 2}
    """
    found = np.bincount(codes, minlength=len(classes)).tolist()
    return dict(zip(classes, found, strict=True))
