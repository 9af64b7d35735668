"""Columns of arrays and data frames to numbers: categories, missing values, and scaling."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.errors import InputError

_MOST_CATEGORIES = 100
# Far outside of what was seen, a network is not to be trusted: values are cut off at so many standard deviations.
FARTHEST = 8.0
# True and false are words in a file, so they are categories in a data frame too.
_CATEGORY_TYPES = ("category", "categorical", "enum", "bool")

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Numbers:
    """A column of numbers.

    Attributes:
        fill: What replaces a missing number: the median.
        flag: Whether numbers were missing in training. Then a second feature says whether the number is missing.
    """

    fill: float
    flag: bool
    kind: Literal["numbers"] = "numbers"

    def encode(self, values: Values, name: str) -> npt.NDArray[np.float64]:
        """Return the features (N, 1), or (N, 2) with the flag."""
        found = _as_numbers(values)
        if found is None:
            raise InputError(
                f"column {name} held numbers when the model was fitted; now it holds {_first_text(values)!r}."
            )
        missing = np.isnan(found)
        filled = np.where(missing, self.fill, found)
        return np.stack([filled, missing], 1) if self.flag else filled[:, None]


@dataclass(frozen=True)
class Categories:
    """A column of categories: one feature for each category that was seen in training.

    Attributes:
        names: The categories as text, the most frequent hundred of them. A missing value is the category "".
    """

    names: tuple[str, ...]
    kind: Literal["categories"] = "categories"

    def encode(self, values: Values, name: str) -> npt.NDArray[np.float64]:  # noqa: ARG002  (as for numbers)
        """Return the features (N, number of categories). A category that is not known has no feature that is 1."""
        place = {text: i for i, text in enumerate(self.names)}
        found = np.array([place.get(text, -1) for text in _as_texts(values)])
        features: npt.NDArray[np.float64] = (found[:, None] == np.arange(len(self.names))).astype(np.float64)
        return features


@dataclass(frozen=True)
class Encoder:
    """Turns rows into scaled features, in the same way as the rows that it was fitted to.

    Attributes:
        names: What messages call the columns.
        columns: What is done with each column.
        mean: What is subtracted from each feature.
        factor: What each feature is multiplied by then: 1 / standard deviation, or 0 for a constant feature.
    """

    names: tuple[str, ...]
    columns: tuple[Numbers | Categories, ...]
    mean: tuple[float, ...]
    factor: tuple[float, ...]

    @classmethod
    def fit(
        cls, rows: Sequence[Values], names: Sequence[str], categorical: Collection[int] = ()
    ) -> tuple[Encoder, Tensor]:
        """Return an encoder for columns, and the features of these columns.

        Args:
            rows: The columns. A column is numbers if all its values are, and otherwise categories.
            names: What messages call them.
            categorical: The places of columns that are categories even if they hold numbers.
        """
        columns = tuple(
            _fit_column(values, name, i in categorical)
            for i, (values, name) in enumerate(zip(rows, names, strict=True))
        )
        plain = cls(tuple(names), columns, (), ())
        features = plain._features(rows)
        mean, std = features.mean(0), features.std(0)
        # Rounding errors in the deviation of a constant column must not be amplified.
        varies = std > 1e-9 * np.maximum(np.abs(mean), 1e-30)
        factor = np.where(varies, 1 / np.where(varies, std, 1), 0.0)
        encoder = cls(plain.names, columns, tuple(mean.tolist()), tuple(factor.tolist()))
        return encoder, encoder._scaled(features)

    def encode(self, rows: Sequence[Values]) -> Tensor:
        """Return the features, float32 (N, d).

        Raises:
            InputError: If a column of numbers holds text.
        """
        return self._scaled(self._features(rows))

    @property
    def plain_names(self) -> list[str]:
        """The names of the columns of a data frame, as they are and not as messages quote them."""
        return [str(ast.literal_eval(name)) for name in self.names]

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as plain values, for a JSON file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Encoder:
        """Return the encoder that `to_dict` described."""
        columns = tuple(
            Numbers(c["fill"], c["flag"]) if c["kind"] == "numbers" else Categories(tuple(c["names"]))
            for c in content["columns"]
        )
        return cls(tuple(content["names"]), columns, tuple(content["mean"]), tuple(content["factor"]))

    def _features(self, rows: Sequence[Values]) -> npt.NDArray[np.float64]:
        parts = [column.encode(v, name) for column, v, name in zip(self.columns, rows, self.names, strict=True)]
        return np.concatenate(parts, axis=1)

    def _scaled(self, features: npt.NDArray[np.float64]) -> Tensor:
        scaled = ((features - np.array(self.mean)) * np.array(self.factor)).clip(-FARTHEST, FARTHEST)
        return torch.from_numpy(scaled.astype(np.float32))


def is_frame(rows: Any) -> bool:
    """Return whether rows are a data frame, such as one of pandas or polars."""
    return hasattr(rows, "columns") and hasattr(rows, "dtypes") and hasattr(rows, "__getitem__")


def frame_columns(frame: Any) -> tuple[list[Values], list[str], list[int]]:
    """Return the columns of a data frame, their names, and the places of those whose type says category or truth value.

    Raises:
        InputError: If a column holds dates or times.
    """
    names = list(frame.columns)
    types = [str(kind).lower() for kind in frame.dtypes]
    values = [frame[name].to_numpy() for name in names]
    for name, column in zip(names, values, strict=True):
        if column.dtype.kind in "mM":
            raise InputError(
                f"column {name!r} holds dates or times. Turn them into numbers, such as the year or the days since a "
                "first day, or leave the column out."
            )
    return values, [repr(name) for name in names], [i for i, t in enumerate(types) if t.startswith(_CATEGORY_TYPES)]


def array_columns(rows: npt.NDArray[Any]) -> tuple[list[Values], list[str]]:
    """Return the columns of an array of numbers, and names for them."""
    return [rows[:, i] for i in range(rows.shape[1])], [f"{i}" for i in range(rows.shape[1])]


def _fit_column(values: Values, name: str, categorical: bool) -> Numbers | Categories:
    found = None if categorical else _as_numbers(values)
    if found is not None:
        if np.isinf(found).any():
            raise InputError(f"column {name} contains infinity or a value too large for float64.")
        missing = np.isnan(found)
        return Numbers(0.0 if missing.all() else float(np.median(found[~missing])), bool(missing.any()))
    texts, counts = np.unique(np.array(_as_texts(values), dtype=object), return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]
    return Categories(tuple(texts[np.sort(frequent)].tolist()))


def _as_numbers(values: Values) -> npt.NDArray[np.float64] | None:
    """Return values as numbers, NaN for missing ones; None if one of them is not a number."""
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if values.dtype.kind != "O" or any(isinstance(value, str) for value in values):
        return None
    try:
        return np.array([np.nan if _is_missing(value) else float(value) for value in values])
    except (TypeError, ValueError):
        return None


def _as_texts(values: Values) -> list[str]:
    def text(value: Any) -> str:
        if _is_missing(value):
            return ""
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()

    return [text(value) for value in values.tolist()]


def _is_missing(value: Any) -> bool:
    """Return whether a cell is None, NaN, or one of the missing values of pandas (which compare to no truth value)."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _first_text(values: Values) -> str:
    return next((str(value)[:60] for value in values.tolist() if isinstance(value, str)), str(values[0])[:60])
