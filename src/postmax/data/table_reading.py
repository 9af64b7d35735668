"""How the columns of a table were read: the label, the columns that were dropped, and the encoder of the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from postmax.data.embedding.text_column import TextColumn
from postmax.data.table_encoder import CategoryColumn, TableEncoder


@dataclass(frozen=True)
class TableReading:
    """What became of each column of a table.

    Attributes:
        label: The column that holds the labels.
        dropped: The columns that are not features.
        encoder: What turns the other columns into features.
        missing: How many values are missing, by column. Columns without missing values are left out, and so are values
            that the encoder has filled in.
    """

    label: str
    dropped: tuple[str, ...]
    encoder: TableEncoder
    missing: Mapping[str, int]

    @classmethod
    def of(cls, label: str, dropped: tuple[str, ...], encoder: TableEncoder, features: Tensor) -> TableReading:
        """Return the reading of a table with these features, (N, d)."""
        return cls(label, dropped, encoder, _missing(encoder, features))

    def to_dict(self) -> dict[str, Any]:
        """Return the reading as plain values, for a JSON file."""
        about = {"label": self.label, "dropped": list(self.dropped), "missing": dict(self.missing)}
        return {**about, **self.encoder.to_dict()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> TableReading:
        """Return the reading that `to_dict` described."""
        encoder = TableEncoder.from_dict(content)
        return cls(content["label"], tuple(content["dropped"]), encoder, dict(content["missing"]))


def _missing(encoder: TableEncoder, features: Tensor) -> dict[str, int]:
    found, start = {}, 0
    for column in encoder.columns:
        mine = features[:, start : start + len(column.features)]
        start += len(column.features)
        if isinstance(column, TextColumn):
            found[column.name] = int((mine == 0).all(1).sum())
        elif not isinstance(column, CategoryColumn):
            found[column.name] = int(mine.isnan().sum())
        elif "" in column.categories:
            found[column.name] = int(mine[:, column.categories.index("")].sum())
    return {name: count for name, count in found.items() if count}
