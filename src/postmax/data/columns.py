"""Read the columns of CSV and Parquet files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from postmax.data.csv_text import parse_csv
from postmax.data.problems import Problems
from postmax.errors import DataError
from postmax.extras import need
from postmax.files import existing_file
from postmax.row_names import PLACES, RowNames

Columns: TypeAlias = Mapping[str, npt.NDArray[Any]]
"""The values of each column, by name: float64 (NaN if missing), whole numbers, or `str` (None if missing)."""

_CSV = frozenset({".csv", ".tsv", ".txt"})
_PARQUET = frozenset({".parquet", ".pq"})


@dataclass(frozen=True)
class FileColumns:
    """The columns of a file.

    Attributes:
        names: The names of all columns, in their order.
        values: The columns that can be used.
        unusable: Why the other columns cannot be used; those that were dropped are not among them.
        rows: How messages call the rows.
    """

    names: tuple[str, ...]
    values: Columns
    unusable: Mapping[str, str]
    rows: RowNames


def is_csv(path: str | Path) -> bool:
    """Return whether the name of a file is that of a CSV file."""
    return Path(path).suffix.lower() in _CSV


def is_parquet(path: str | Path) -> bool:
    """Return whether the name of a file is that of a Parquet file."""
    return Path(path).suffix.lower() in _PARQUET


def read_columns(path: str | Path, *, encoding: str | None = None) -> Columns:
    """Return all columns of a CSV or Parquet file. All cells of CSV are text; the columns of Parquet have types.

    Args:
        path: The file.
        encoding: The encoding of a CSV file. None for UTF-8, or for UTF-16 with a byte-order mark.

    Raises:
        DataError: If the file is damaged, is of another format, has two columns with the same name, has no rows, or has
            a Parquet column that is neither numbers nor text.
    """
    with Problems(path) as problems:
        file = load_columns(path, encoding, (), problems)
        note_unusable(file, problems)
    return file.values


def load_columns(path: str | Path, encoding: str | None, drop: Collection[str], problems: Problems) -> FileColumns:
    """Return the columns of a CSV or Parquet file but the dropped ones."""
    path = existing_file(path)
    if is_csv(path):
        table = parse_csv(path.read_bytes(), encoding, problems)
        names, rows = table.header, RowNames("line", table.lines)
        count, columns = len(table.rows), table.column
    elif is_parquet(path):
        content = read_parquet(path)
        names, rows = tuple(content.column_names), PLACES
        count, columns = len(content), content.column
    else:
        known = " ".join(sorted(_CSV | _PARQUET))
        raise DataError(f"{path}: data tables are read from {known} files.")
    if not names:
        problems.stop("it has no columns.")
    if not count and not problems.found:
        problems.stop("it has a header but no rows." if is_csv(path) else "it has no rows.")
    counts = Counter(names)
    values: dict[str, npt.NDArray[Any]] = {}
    unusable: dict[str, str] = {}
    for place, name in enumerate(names):
        if name in drop:
            continue
        if counts[name] > 1:
            unusable[name] = repeated(name, counts[name])
            continue
        found = np.array(columns(place), dtype=object) if is_csv(path) else parquet_values(columns(place))
        if isinstance(found, str):
            unusable[name] = f"column {name!r} is of type {found}, but features and labels are numbers or text."
        else:
            values[name] = found
    return FileColumns(names, values, unusable, rows)


def repeated(name: str, count: int) -> str:
    """Return that several columns have one name."""
    return f"{count} columns {f'are called {name!r}' if name else 'have no name'}. Rename them."


def note_unusable(file: FileColumns, problems: Problems, label: str | None = None) -> None:
    """Note the columns that cannot be used. A column can be dropped, if it does not hold the labels."""
    for name, reason in file.unusable.items():
        problems.add(reason, **({} if name == label else {"drop": name}))


def read_parquet(path: Path) -> Any:
    """Return a Parquet file as a `pyarrow.Table`.

    Raises:
        DataError: If the file is damaged or of another format.
    """
    arrow, parquet = need("pyarrow", "data"), need("pyarrow.parquet", "data")
    try:
        return parquet.read_table(existing_file(path), partitioning=None)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path} is not a Parquet file, or it is damaged ({error}).") from error


def parquet_values(column: Any) -> npt.NDArray[Any] | str:
    """Return the values of a column, or the name of its type if it is neither numbers nor text."""
    types = need("pyarrow.types", "data")
    kind = column.type
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        if column.null_count == 0 and not types.is_decimal(kind):
            values: npt.NDArray[Any] = column.to_numpy()
            return values
        return np.array([np.nan if v is None else float(v) for v in column.to_pylist()])
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind):
        return np.array(column.to_pylist(), dtype=object)
    return str(kind)
