"""Turn the columns of a data table into features, in the same way for the training table and for later ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.data.cells import place_of, texts_of
from postmax.data.columns import Columns
from postmax.data.decimal_signs import with_clear_decimals
from postmax.data.embedding.text_column import REFUSE, TextColumn, check_text, is_free_text
from postmax.data.number_text import Decimal, numbers
from postmax.data.problems import Problems
from postmax.errors import InputError
from postmax.registry import nearest
from postmax.row_names import INDICES, RowNames

Missing = Literal["error", "median", "keep"]
# What to do with a category that the table did not have from which the encoder was made.
Unknown = Literal["error", "ignore"]

Features: TypeAlias = npt.NDArray[np.float32]

_MOST_CATEGORIES = 100
_SIGNS: tuple[Decimal, ...] = (".", ",")
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

    def encode(
        self,
        values: npt.NDArray[Any],
        decimal: Decimal,
        rows: RowNames,
        problems: Problems,
        unknown: Unknown = "error",  # noqa: ARG002  (as for categories)
    ) -> Features:
        """Return the features (N, 1). What cannot be used is noted."""
        known = numbers(values, decimal)
        if known is None:
            odd = [row for row in range(len(values)) if numbers(values[row : row + 1], decimal) is None]
            what = f"{str(values[odd[0]])[:60]!r}{place_of(odd, rows)}"
            other: Decimal = "," if decimal == "." else "."
            remedy = {} if numbers(values, other) is None else {"decimal": other}
            problems.add(f"column {self.name!r} holds {what}, which is not a number.", **remedy)
            return np.zeros((len(values), 1), np.float32)
        if self.fill is not None:
            known = np.where(np.isnan(known), self.fill, known)
        with np.errstate(over="ignore"):
            features = known.astype(np.float32)
        missing = np.flatnonzero(np.isnan(known)) if self.fill is None else np.zeros(0, np.int64)
        infinite = np.flatnonzero(np.isinf(features))
        if len(missing):
            problems.add(f"column {self.name!r} has no value{place_of(missing, rows)}.", missing="median")
        if len(infinite):
            what = f"{known[infinite[0]]}{place_of(infinite, rows)}"
            problems.add(f"column {self.name!r} holds {what}, too large for a feature. Correct it.")
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

    def encode(
        self,
        values: npt.NDArray[Any],
        decimal: Decimal,  # noqa: ARG002  (as for numbers)
        rows: RowNames,
        problems: Problems,
        unknown: Unknown = "error",
    ) -> Features:
        """Return the features (N, number of categories). What cannot be used is noted."""
        place = {category: i for i, category in enumerate(self.categories)}
        texts = texts_of(values)
        if unknown == "ignore":  # the row below the last one is that of no category
            none = np.zeros((1, len(place)), np.float32)
            known = np.concatenate([np.eye(len(place), dtype=np.float32), none])
            return known[[place.get(text, len(place)) for text in texts]]
        new: dict[str, list[int]] = {}
        for row, text in enumerate(texts):
            if text not in place:
                new.setdefault(text, []).append(row)
        for text, found in new.items():
            where = place_of(found, rows)
            new_category = f"holds {text[:60]!r}{where}, which is a new category"
            what = new_category if text else f"has no value{where}, but every training row had one"
            problems.add(f"column {self.name!r} {what}.", unknown="ignore")
        return np.eye(len(place), dtype=np.float32)[[place.get(text, 0) for text in texts]]


Column: TypeAlias = NumberColumn | CategoryColumn | TextColumn


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

    columns: tuple[Column, ...]

    @classmethod
    def fit(
        cls,
        columns: Columns,
        *,
        categorical: Collection[str] = (),
        missing: Missing = "error",
        decimal: Decimal = ".",
        text: str = REFUSE,
        where: str = "the table",
    ) -> TableEncoder:
        """Return an encoder for a table: a column is numbers if all its values are, and otherwise categories.

        Args:
            columns: The columns of the table, without the label.
            categorical: Columns of numbers that are categories.
            missing: What to do with missing numbers: an error, the median of the column, or keep them as NaN.
            decimal: The sign before the decimals of a number: a point or a comma.
            text: What to do with free text of more than 100 different values: "refuse" it, "embed" it with the usual
                model, or the name of the model to embed it with.
            where: The name of the file, for error messages.

        Raises:
            DataError: If a column has no values, if it is text with more than 100 different values, or if its numbers
                have the other decimal sign.
        """
        with Problems(where) as problems:
            decimal, columns = with_clear_decimals(columns, categorical, decimal, problems)
            return cls.fitted(columns, categorical, missing, decimal, problems, text)

    @classmethod
    def fitted(
        cls,
        columns: Columns,
        categorical: Collection[str],
        missing: Missing,
        decimal: Decimal,
        problems: Problems,
        text: str = REFUSE,
    ) -> TableEncoder:
        """Return an encoder for the columns that can be used. The other ones are noted."""
        check_text(text)
        found = [
            _fit_column(name, values, name in categorical, missing, decimal, text, problems)
            for name, values in columns.items()
        ]
        return cls(tuple(column for column in found if column is not None))

    @property
    def features(self) -> tuple[str, ...]:
        """The names of all features."""
        return tuple(feature for column in self.columns for feature in column.features)

    def encode(
        self,
        columns: Columns,
        *,
        decimal: Decimal = ".",
        where: str = "the table",
        rows: RowNames = INDICES,
    ) -> Tensor:
        """Return the features of a table, float32 (N, d). Columns that the encoder does not know are ignored.

        Args:
            columns: The columns of the table.
            decimal: The sign before the decimals of a number.
            where: The name of the file, for error messages.
            rows: How error messages call the rows.

        Raises:
            DataError: If a column is missing, a value is missing, infinite or not a number, or a category is new.
        """
        with Problems(where) as problems:
            return self.encoded(columns, decimal, rows, problems)

    def encoded(
        self, columns: Columns, decimal: Decimal, rows: RowNames, problems: Problems, unknown: Unknown = "error"
    ) -> Tensor:
        """Return the features of a table. What cannot be used is noted."""
        known = [column for column in self.columns if column.name in columns]
        self.note_absent(columns, problems)
        parts = [column.encode(columns[column.name], decimal, rows, problems, unknown) for column in known]
        return torch.from_numpy(np.concatenate(parts, axis=1)) if parts else torch.zeros(0, 0)

    def note_absent(self, names: Collection[str], problems: Problems) -> None:
        """Note the columns that the features need and that are not among these names."""
        own = {column.name for column in self.columns}
        for name in (column.name for column in self.columns if column.name not in names):
            near = nearest(name, [other for other in names if other not in own])
            hint = "" if near is None else f" Is it {near!r}? Then rename it."
            problems.add(f"there is no column {name!r}, which the features need.{hint}")

    def with_missing(self, missing: Literal["error", "keep"]) -> TableEncoder:
        """Return the same encoder with another way to handle missing numbers: an error, or keep them as NaN."""
        fill = float("nan") if missing == "keep" else None
        return TableEncoder(
            tuple(replace(column, fill=fill) if isinstance(column, NumberColumn) else column for column in self.columns)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as plain values, for a JSON file."""
        return {"columns": [_plain(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> TableEncoder:
        """Return the encoder that `to_dict` described."""
        return cls(tuple(_column(c) for c in content["columns"]))


def _column(content: Mapping[str, Any]) -> Column:
    if "model" in content:
        return TextColumn.from_dict(content)
    if "categories" in content:
        return CategoryColumn(content["name"], tuple(content["categories"]))
    return NumberColumn(content["name"], float("nan") if content["fill"] == _KEEP else content["fill"])


def _plain(column: Column) -> dict[str, Any]:
    found = asdict(column)
    return found if found.get("fill") is None or not np.isnan(found["fill"]) else {**found, "fill": _KEEP}


def _fit_column(
    name: str,
    values: npt.NDArray[Any],
    categorical: bool,
    missing: str,
    decimal: Decimal,
    text: str,
    problems: Problems,
) -> Column | None:
    found = None if categorical else numbers(values, decimal)
    if found is not None:
        known = found[np.isfinite(found)]
        if not len(known):
            problems.add(f"column {name!r} has no values.", drop=name)
            return None
        return NumberColumn(name, {"error": None, "median": float(np.median(known)), "keep": float("nan")}[missing])
    categories = sorted(set(texts_of(values)))
    if len(categories) > _MOST_CATEGORIES:
        if odd := _not_numbers(categories):
            problems.add(
                f"column {name!r} holds numbers, but also {_quoted(odd)}. If such a cell is missing, leave it empty."
            )
            return None
        return _fit_text(name, categories, text, problems)
    return CategoryColumn(name, tuple(categories))


def _fit_text(name: str, different: Sequence[str], text: str, problems: Problems) -> TextColumn | None:
    """Return a column of free text, if it is to be embedded and can be; otherwise note that it cannot be used."""
    problem = f"column {name!r} is text with {len(different)} different values, such as {different[-1][:60]!r}."
    if text != REFUSE and is_free_text(different):
        try:
            return TextColumn.of(name, text)
        except InputError as error:
            problem += f" It cannot be embedded: {error}"
    problems.add(problem, drop=name)
    return None


def _not_numbers(texts: Sequence[str]) -> list[str]:
    """Return the texts that are no numbers, if most of the texts are numbers; otherwise nothing."""
    odd = [text for text in texts if all(numbers(np.array([text], object), sign) is None for sign in _SIGNS)]
    return odd if 2 * len(odd) < len(texts) else []


def _quoted(texts: Sequence[str]) -> str:
    return ", ".join(repr(text[:20]) for text in texts[:5]) + (", …" if len(texts) > 5 else "")
