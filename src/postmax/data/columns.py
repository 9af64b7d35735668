"""Read the columns of CSV, Parquet and Arrow files."""

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
from postmax.data.typed_files import ARROW, PARQUET, is_typed, read_typed, typed_values
from postmax.errors import DataError
from postmax.files import existing_file
from postmax.row_names import PLACES, RowNames

Columns: TypeAlias = Mapping[str, npt.NDArray[Any]]
"""The values of each column, by name: float64 (NaN if missing), whole numbers, or `str` (None if missing)."""

CSV = frozenset({".csv", ".tsv", ".txt"})


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
    return Path(path).suffix.lower() in CSV


def read_columns(path: str | Path, *, encoding: str | None = None) -> Columns:
    """Return all columns of a CSV, Parquet or Arrow file. All cells of CSV are text; other columns have types.

    Args:
        path: The file.
        encoding: The encoding of a CSV file. None for UTF-8, or for UTF-16 with a byte-order mark.

    Raises:
        DataError: If the file is damaged, is of another format, has two columns with the same name, has no rows, or has
            a column of a type that is neither numbers nor text.
    """
    with Problems(path) as problems:
        file = load_columns(path, encoding, (), problems)
        note_unusable(file, problems)
    return file.values


def load_columns(path: str | Path, encoding: str | None, drop: Collection[str], problems: Problems) -> FileColumns:
    """Return the columns of a CSV, Parquet or Arrow file but the dropped ones."""
    path = existing_file(path)
    if is_csv(path):
        table = parse_csv(path.read_bytes(), encoding, problems)
        names, rows = table.header, RowNames("line", table.lines)
        count, columns = len(table.rows), table.column
    elif is_typed(path):
        content = read_typed(path)
        names, rows = tuple(content.column_names), PLACES
        count, columns = len(content), content.column
    else:
        known = " ".join(sorted(CSV | PARQUET | ARROW))
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
        found = np.array(columns(place), dtype=object) if is_csv(path) else typed_values(columns(place))
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
