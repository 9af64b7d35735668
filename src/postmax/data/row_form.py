"""What the rows of a trained model are, and how new rows without labels are read for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy.typing as npt
from torch import Tensor

from postmax.data.number_text import Decimal
from postmax.data.reading import ReadingOptions
from postmax.data.table_encoder import Unknown
from postmax.data.table_reading import TableReading
from postmax.errors import InputError
from postmax.row_names import RowNames
from postmax.wording import advice


@dataclass(frozen=True)
class RowForm:
    """What the rows of a model are, and how they are read if nothing else is said.

    Attributes:
        shape: The shape of one row: (features) or (channels, height, width).
        table: How the columns of the training table were read; None if the rows were no table.
        missing: What to do with missing numbers: "error", or "median" for the medians of the training rows.
        decimal: The sign before the decimals of a number in a CSV file.
        encoding: The encoding of a CSV file; None for UTF-8, or for UTF-16 with a byte-order mark.
        size: The side to which the images of a folder are resized; None if they were as they are.
    """

    shape: tuple[int, ...]
    table: TableReading | None = None
    missing: Literal["error", "median"] = "error"
    decimal: Decimal = "."
    encoding: str | None = None
    size: int | None = None

    @property
    def reading(self) -> dict[str, Any]:
        """The attributes that say how a file is read, as plain values."""
        return {"missing": self.missing, "decimal": self.decimal, "encoding": self.encoding, "size": self.size}

    def to_dict(self) -> dict[str, Any]:
        """Return the form as plain values, for a JSON file."""
        table = None if self.table is None else self.table.to_dict()
        return {"shape": list(self.shape), "table": table, "reading": self.reading}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> RowForm:
        """Return the form that `to_dict` described."""
        table = None if content["table"] is None else TableReading.from_dict(content["table"])
        return cls(tuple(content["shape"]), table, **content["reading"])

    def fills(self, reading: NewReading) -> bool:
        """Return whether missing numbers are filled in."""
        return (reading.missing or self.missing) == "median"

    @property
    def are_images(self) -> bool:
        """Whether the rows are images."""
        return len(self.shape) == 3

    def __str__(self) -> str:
        """Return the form of a row in words."""
        if self.are_images:
            channels, height, width = self.shape
            return f"images of {height} × {width} pixels with {channels} channel{'s' * (channels > 1)}"
        return f"rows of {self.shape[0]} feature{'s' * (self.shape[0] > 1)}"


@dataclass(frozen=True)
class NewReading:
    """How new rows are read. What is None is as it was in training.

    Attributes:
        drop: Columns that are not features, so that they are not mentioned as ignored.
        missing: What to do with missing numbers: "error", or "median" for the medians of the training rows.
        decimal: The sign before the decimals of a number in a CSV file.
        encoding: The encoding of a CSV file.
        unknown: What to do with a category that the training rows did not have: "error", or "ignore" for a row that
            is in none of the known categories.
        keep: Columns of a file that are handed on with its rows, such as an identifier.
    """

    drop: tuple[str, ...] = ()
    missing: Literal["error", "median"] | None = None
    decimal: Decimal | None = None
    encoding: str | None = None
    unknown: Unknown = "error"
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, allowed in (("missing", ("error", "median")), ("unknown", ("error", "ignore"))):
            value = getattr(self, name)
            if value is not None and value not in allowed:
                option = advice(python=name, command=f"--{name}")
                raise InputError(f"{option} is {' or '.join(allowed)}, not {value!r}.")
        self.given  # noqa: B018  (it checks the others)

    @property
    def given(self) -> ReadingOptions:
        """The options that every reader has, as they were given; what was not given has its default."""
        return ReadingOptions(None, self.drop, self.missing or "error", self.decimal or ".", self.encoding)


@dataclass(frozen=True)
class NewRows:
    """Some rows.

    Attributes:
        inputs: float32 features (N, d), NaN where a value is missing and will be filled in; or uint8 images
            (N, C, H, W).
        names: How messages call the rows.
        kept: The columns that were asked for, and "file" for images of a folder.
    """

    inputs: Tensor
    names: RowNames
    kept: Mapping[str, Sequence[Any] | npt.NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenRows:
    """Rows that are read block by block.

    Attributes:
        blocks: The rows. A file is read while they are taken.
        ignored: The columns that the model does not use, and that nobody has named.
    """

    blocks: Iterator[NewRows]
    ignored: tuple[str, ...] = ()
