"""Turn the columns of a data table into features, in the same way for the training table and for later ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.data.columns import Columns
from postmax.errors import DataError

Missing = Literal["error", "median", "keep"]

_MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_MOST_CATEGORIES = 100
# JSON has no NaN, so this word says in a file that missing values stay missing.
_KEEP = "keep"


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers.

    Attributes:
        name: The name of the column.
        fill: The number that replaces missing values. None if they are errors, NaN if they stay missing.
    """

    name: str
    fill: float | None = None

    @property
    def features(self) -> list[str]:
        """The names of the features of this column."""
        return [self.name]

    def encode(self, values: npt.NDArray[Any], where: str) -> npt.NDArray[np.float32]:
        """Return the features (N, 1)."""
        numbers = _numbers(values)
        if numbers is None:
            row = next(i for i in range(len(values)) if _numbers(values[i : i + 1]) is None)
            raise DataError(f"{where}: row {row} holds {values[row]!r}, which is not a number.")
        if self.fill is not None:
            numbers = np.where(np.isnan(numbers), self.fill, numbers)
        with np.errstate(over="ignore"):
            features = numbers.astype(np.float32)
        kept = np.isnan(numbers) if self.fill is not None else np.zeros(len(numbers), dtype=bool)
        bad = np.flatnonzero(~np.isfinite(features) & ~kept)
        if len(bad):
            raise DataError(_unusable(where, numbers, bad))
        return features[:, None]


@dataclass(frozen=True)
class CategoryColumn:
    """A column of text. It has one feature for each category, which is 1 for rows of this category.

    Attributes:
        name: The name of the column.
        categories: The categories. A missing value is the category `""`.
    """

    name: str
    categories: tuple[str, ...]

    @property
    def features(self) -> list[str]:
        """The names of the features of this column."""
        return [f"{self.name}={category or '(missing)'}" for category in self.categories]

    def encode(self, values: npt.NDArray[Any], where: str) -> npt.NDArray[np.float32]:
        """Return the features (N, number of categories)."""
        place = {category: i for i, category in enumerate(self.categories)}
        texts = _texts(values)
        new = next((row for row, text in enumerate(texts) if text not in place), None)
        if new is not None:
            raise DataError(f"{where}: row {new} holds {texts[new][:60]!r}, which is a new category.")
        return np.eye(len(place), dtype=np.float32)[[place[text] for text in texts]]


@dataclass(frozen=True)
class TableEncoder:
    """An encoder that turns the columns of a data table into features.

    Example:
        >>> columns = {"age": np.array([30.0, 40.0]), "colour": np.array(["red", "blue"], dtype=object)}
        >>> encoder = TableEncoder.fit(columns)
        >>> encoder.features
        ('age', 'colour=blue', 'colour=red')
        >>> encoder.encode(columns)
        tensor([[30.,  0.,  1.],
                [40.,  1.,  0.]])
    """

    columns: tuple[NumberColumn | CategoryColumn, ...]

    @classmethod
    def fit(
        cls,
        columns: Columns,
        *,
        categorical: Collection[str] = (),
        missing: Missing = "error",
        where: str = "the table",
    ) -> TableEncoder:
        """Return an encoder for a table: a column is numbers if all its values are, and otherwise categories.

        Args:
            columns: The columns of the table, without the label.
            categorical: Columns of numbers that are categories.
            missing: What to do with missing numbers: an error, the median of the column, or keep them as NaN.
            where: The name of the file, for error messages.

        Raises:
            DataError: If a column has no values, or if it is text with more than 100 different values.
        """
        return cls(
            tuple(_fit_column(name, v, name in categorical, missing, where) for name, v in columns.items()),
        )

    @property
    def features(self) -> tuple[str, ...]:
        """The names of all features."""
        return tuple(feature for column in self.columns for feature in column.features)

    def encode(self, columns: Columns, *, where: str = "the table") -> Tensor:
        """Return the features of a table, float32 (N, d). Columns that the encoder does not know are ignored.

        Raises:
            DataError: If a column is missing, a value is missing, infinite or not a number, or a category is new.
        """
        absent = [column.name for column in self.columns if column.name not in columns]
        if absent:
            raise DataError(f"{where} has no column {absent[0]!r}, which the features need.")
        parts = [c.encode(columns[c.name], f"{where}: column {c.name!r}") for c in self.columns]
        return torch.from_numpy(np.concatenate(parts, axis=1))

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as plain values, for a JSON file."""
        return {"columns": [_plain(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> TableEncoder:
        """Return the encoder that `to_dict` described."""
        return cls(
            tuple(
                CategoryColumn(c["name"], tuple(c["categories"]))
                if "categories" in c
                else NumberColumn(c["name"], float("nan") if c["fill"] == _KEEP else c["fill"])
                for c in content["columns"]
            )
        )


def _plain(column: NumberColumn | CategoryColumn) -> dict[str, Any]:
    found = asdict(column)
    return found if found.get("fill") is None or not np.isnan(found["fill"]) else {**found, "fill": _KEEP}


def _fit_column(
    name: str, values: npt.NDArray[Any], as_text: bool, missing: str, where: str
) -> NumberColumn | CategoryColumn:
    where = f"{where}: column {name!r}"
    numbers = None if as_text else _numbers(values)
    if numbers is None:
        categories = sorted(set(_texts(values)))
        if len(categories) > _MOST_CATEGORIES:
            raise DataError(
                f"{where} is text with {len(categories)} different values, such as {categories[-1]!r}. "
                "Drop it if it names rows; write numbers with a decimal point."
            )
        return CategoryColumn(name, tuple(categories))
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        raise DataError(f"{where} has no values. Drop it.")
    fill = {"error": None, "median": float(np.median(known)), "keep": float("nan")}[missing]
    return NumberColumn(name, fill)


def _unusable(where: str, numbers: npt.NDArray[np.float64], rows: npt.NDArray[np.intp]) -> str:
    shown = ", ".join(map(str, rows[:5])) + (", …" if len(rows) > 5 else "")
    missing = np.isnan(numbers[rows[0]])
    what = "no value" if missing else f"{numbers[rows[0]]}, too large for a feature"
    one = len(rows) == 1
    which = "the row" if one else "the rows"
    advice = (
        f'Fill {"it" if one else "them"} in, drop {which}, or set missing="median".'
        if missing
        else f"Correct or drop {which}."
    )
    return f"{where}: row {rows[0]} has {what}{'' if one else f' ({len(rows)} such rows: {shown})'}. {advice}"


def _numbers(values: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
    """Return the values as float64, with NaN for missing ones; None if one of them is not a number."""
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if any("_" in v for v in values if v is not None):  # Python reads "1_000" as a number, but people mean a name
        return None
    try:
        return values.astype(np.float64)
    except (ValueError, TypeError):
        cells = ["nan" if v is None or v.strip().lower() in _MISSING_WORDS else v for v in values]
    try:
        return np.array(cells, dtype=object).astype(np.float64)
    except ValueError:
        return None


def _texts(values: npt.NDArray[Any]) -> list[str]:
    def text(value: Any) -> str:
        if value is None or (isinstance(value, float) and np.isnan(value)):
            return ""
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()

    return [text(v) for v in values.tolist()]
