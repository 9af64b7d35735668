"""What is believed about labels, as columns that any tool can read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from postmax.extras import need
from postmax.files import atomic_write
from postmax.fitting.doubt import Doubt
from postmax.row_names import RowNames

Column = npt.NDArray[Any]
_DIGITS = 6


@dataclass(frozen=True, eq=False)
class LabelTable(Mapping[str, Column]):
    """One row for each label: a mapping from the names of columns to arrays.

    Attributes:
        columns: What rows are called by (`row`, `line` or `file`), `given` and `suggested` labels, `p_wrong`, the
            probability that the given label is wrong, and `p_suggested`, that of the suggested one.

    Example:
        >>> columns = {"row": [7, 9], "given": ["cat", "dog"], "suggested": ["dog", "dog"]}
        >>> table = LabelTable({name: np.array(column) for name, column in columns.items()})
        >>> table.rows, table["given"][0]
        (2, np.str_('cat'))
        >>> table.taken([1]).records()
        [{'row': 9, 'given': 'dog', 'suggested': 'dog'}]
    """

    columns: Mapping[str, Column]

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"LabelTable({self.rows} rows: {', '.join(self.columns)})"

    def taken(self, rows: Any) -> LabelTable:
        """Return some of the rows, in the given order."""
        return LabelTable({name: column[np.asarray(rows, dtype=np.int64)] for name, column in self.columns.items()})

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary of plain values for each row."""
        plain = [column.tolist() for column in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*plain, strict=True)]

    def to_pandas(self) -> Any:
        """Return a data frame of pandas.

        Raises:
            MissingDependency: If pandas is not installed.
        """
        return need("pandas", "frames").DataFrame(dict(self.columns))

    def to_csv(self, path: str | Path) -> None:
        """Write a CSV file, which appears when it is complete. Probabilities have six digits."""
        plain = [_written(column) for column in self.columns.values()]
        with atomic_write(path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            lines = csv.writer(text, lineterminator="\n")
            lines.writerow(self.columns)
            lines.writerows(zip(*plain, strict=True))
            text.detach()  # closing it would close the file

    def to_json(self, path: str | Path) -> None:
        """Write a list of objects, one for each row, as JSON."""
        with atomic_write(path) as file:
            file.write(json.dumps(self.records(), ensure_ascii=False, allow_nan=False).encode())

    def to_parquet(self, path: str | Path) -> None:
        """Write a Parquet file.

        Raises:
            MissingDependency: If pyarrow is not installed.
        """
        table = need("pyarrow", "data").table({name: column.tolist() for name, column in self.columns.items()})
        with atomic_write(path) as file:
            need("pyarrow.parquet", "data").write_table(table, file)


def label_table(doubt: Doubt, codes: npt.NDArray[np.int64], classes: Sequence[str | int], rows: RowNames) -> LabelTable:
    """Return what is believed about labels, with the names of the classes and of the rows.

    Args:
        doubt: What is believed.
        codes: The labels, as class indices.
        classes: The names of the classes.
        rows: What rows are called. A line and a file keep their names, and an index that is counted from 0 stays so;
            other rows are counted from 1.
    """
    names = np.asarray(classes)
    unit = rows.kind if rows.kind in ("line", "file") else "row"
    first = 0 if rows.kind == "index" else 1
    called = np.arange(first, first + len(codes)) if rows.numbers is None else np.asarray(rows.numbers)
    return LabelTable(
        {
            unit: called,
            "given": names[codes],
            "suggested": names[doubt.suggested],
            "p_wrong": np.clip(1 - doubt.right, 0, 1),
            "p_suggested": np.clip(doubt.probability, 0, 1),
        }
    )


def _written(column: Column) -> list[Any]:
    if column.dtype.kind != "f":
        return list(column.tolist())
    return [f"{value:.{_DIGITS}g}" for value in column]
