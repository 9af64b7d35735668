"""Read the columns of CSV and Parquet files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from postmax.data.csv_text import read_csv_text
from postmax.data.files import existing_file
from postmax.errors import DataError
from postmax.extras import need

Columns: TypeAlias = Mapping[str, npt.NDArray[Any]]
"""The values of each column, by name: float64 (NaN if missing), whole numbers, or `str` (None if missing)."""

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(\.[0-9]+)?")
_LABEL_NAMES = ("label", "labels", "y", "target", "targets", "class")
_CSV = frozenset({".csv", ".tsv", ".txt"})
_PARQUET = frozenset({".parquet", ".pq"})


def is_csv(path: str | Path) -> bool:
    """Return whether the name of a file is that of a CSV file."""
    return Path(path).suffix.lower() in _CSV


def is_parquet(path: str | Path) -> bool:
    """Return whether the name of a file is that of a Parquet file."""
    return Path(path).suffix.lower() in _PARQUET


def read_columns(path: str | Path) -> Columns:
    """Return all columns of a CSV or Parquet file. All cells of CSV are text; the columns of Parquet have types.

    Raises:
        DataError: If the file is damaged, is of another format, has two columns with the same name, has no rows, or has
            a Parquet column that is neither numbers nor text.
    """
    path = existing_file(path)
    if is_csv(path):
        table = read_csv_text(path)
        _check_names(table.header, path)
        columns = {name: np.array(table.column(i), dtype=object) for i, name in enumerate(table.header)}
    elif is_parquet(path):
        content = read_parquet(path)
        _check_names(content.column_names, path)
        columns = {name: _parquet_column(content.column(name), f"{path}: {name}") for name in content.column_names}
    else:
        known = " ".join(sorted(_CSV | _PARQUET))
        raise DataError(f"{path}: data tables are read from {known} files.")
    if not len(next(iter(columns.values()))):
        raise DataError(f"{path} has no rows.")
    return columns


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


def label_column(names: Iterable[str], given: str | None, path: str | Path) -> str:
    """Return the column of the labels: the given one, the only one, or the only one with a usual name.

    Raises:
        DataError: If there is no such column, or several. The message lists the columns.

    Example:
        >>> label_column(["age", "Label"], None, "table.csv")
        'Label'
    """
    names = list(names)
    # The label is often the last column, so a long list shows both ends.
    listing = ", ".join(names if len(names) <= 20 else [*names[:8], "…", *names[-8:]])
    if given is not None:
        if names.count(given) == 1:
            return given
        problem = f"has {names.count(given)} columns called {given!r}" if given in names else f"has no column {given!r}"
        raise DataError(f"{path} {problem}; its columns are {listing}.")
    found = names if len(names) == 1 else [name for name in names if name.lower() in _LABEL_NAMES]
    if len(found) != 1:
        raise DataError(f"{path}: which column holds the labels? Name one of its columns (label=, --label): {listing}.")
    return found[0]


def label_values(texts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels as numbers if all texts are numbers, so that 10 comes after 9. Otherwise return the texts.

    Example:
        >>> label_values(np.array(["10", "9"], dtype=object))
        array([10,  9])
        >>> label_values(np.array(["007", "9"], dtype=object))
        array(['007', '9'], dtype=object)
    """
    numbers = [_NUMBER.fullmatch(text) for text in texts]
    if not all(numbers):
        return texts
    return texts.astype(np.float64 if any(number and number[1] for number in numbers) else np.int64)


def _check_names(names: Iterable[str], path: Path) -> None:
    counts = Counter(names).most_common(1)
    if not counts:
        raise DataError(f"{path} has no columns.")
    name, count = counts[0]
    if count > 1:
        raise DataError(f"{path} has {count} columns called {name!r}. Rename them.")


def _parquet_column(column: Any, where: str) -> npt.NDArray[Any]:
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
    raise DataError(f"{where} is of type {kind}; features are numbers or text. Convert the column, or drop it.")
