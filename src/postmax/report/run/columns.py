"""How the columns of a table were read, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from postmax.data.embedding.text_column import TextColumn
from postmax.data.table_encoder import Column, NumberColumn
from postmax.data.table_reading import TableReading
from postmax.train.records import DataRecord

_MOST = 200
_CATEGORIES = 8


@dataclass(frozen=True)
class ColumnRow:
    """One column, as texts."""

    name: str
    read_as: str
    missing: str
    feature: bool = True


@dataclass(frozen=True)
class ColumnTable:
    """The columns of a table.

    Attributes:
        rows: The label, the features and the dropped columns.
        left_out: How many columns are not shown, because there are too many.
        features: How many columns are features.
        inputs: How many numbers the network gets for each row.
    """

    rows: tuple[ColumnRow, ...]
    left_out: int
    features: int
    inputs: int


def column_table(data: DataRecord | None) -> ColumnTable | None:
    """Return how each column was read; None if the data are no table, or the run did not record it."""
    return None if data is None else column_table_of(data["table"])


def column_table_of(table: Mapping[str, Any] | None) -> ColumnTable | None:
    """Return how each column was read, from what a `TableReading` keeps; None if the data are no table."""
    if table is None:
        return None
    reading = TableReading.from_dict(table)
    rows = [
        ColumnRow(reading.label, "the label", "", feature=False),
        *(_row(column, reading.missing.get(column.name, 0)) for column in reading.encoder.columns),
        *(ColumnRow(name, "not used: dropped", "", feature=False) for name in reading.dropped),
    ]
    return ColumnTable(
        rows=tuple(rows[:_MOST]),
        left_out=max(0, len(rows) - _MOST),
        features=len(reading.encoder.columns),
        inputs=len(reading.encoder.features),
    )


def _row(column: Column, missing: int) -> ColumnRow:
    if isinstance(column, NumberColumn):
        return ColumnRow(
            column.name, "number", f"{missing}, filled with the median of the training rows" if missing else ""
        )
    if isinstance(column, TextColumn):
        missed = f"{missing}, with features that are 0" if missing else ""
        return ColumnRow(column.name, f"free text: {column.dims} features of {column.model}", missed)
    names = [category for category in column.categories if category]
    shown = ", ".join(names[:_CATEGORIES]) + (", …" if len(names) > _CATEGORIES else "")
    return ColumnRow(
        column.name, f"{len(names)} categories: {shown}", f"{missing}, a category of their own" if missing else ""
    )
