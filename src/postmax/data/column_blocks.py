"""Read the columns of CSV, Parquet and Arrow files in blocks of rows, so that a file may be larger than the memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from postmax.data.columns import FileColumns, is_csv, repeated
from postmax.data.csv_blocks import CsvBlock, csv_blocks
from postmax.data.problems import Problems
from postmax.data.typed_files import is_typed, typed_blocks, typed_schema, typed_values
from postmax.errors import DataError
from postmax.row_names import RowNames


def column_blocks(
    path: Path,
    encoding: str | None,
    wanted: Collection[str] | None,
    rows_at_once: int,
    problems: Problems,
    *,
    kept: Collection[str] = (),
) -> Iterator[FileColumns]:
    """Yield the wanted columns of a table in a file, block by block, and one empty block if there are no rows.

    Args:
        path: The file.
        encoding: The encoding of a CSV file.
        wanted: The names of the columns to read; None for all. Other columns are not looked at, and the file need not
            have all.
        rows_at_once: How many rows a block has; the last one may have fewer.
        problems: Gets what is wrong with the file.
        kept: The names of columns that are read too, as they are: they may hold anything, such as dates.
    """
    if is_csv(path):
        for block in csv_blocks(path, encoding, rows_at_once, problems):
            yield _of_text(block, {*(block.header if wanted is None else wanted), *kept})
        return
    if not is_typed(path):
        raise DataError(f"{path}: data tables are read from CSV, Parquet and Arrow files.")
    yield from _typed_blocks(path, wanted, kept, rows_at_once)


def _of_text(block: CsvBlock, names: Collection[str]) -> FileColumns:
    return _columns(block.header, names, block.names, lambda place: _objects(block.column(place)))


def _objects(cells: Sequence[Any]) -> npt.NDArray[Any]:
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


def _columns(
    names: Sequence[str], wanted: Collection[str], rows: RowNames, values_of: Callable[[int], Any]
) -> FileColumns:
    counts = Counter(names)
    values, unusable = {}, {}
    for place, name in enumerate(names):
        if name not in wanted:
            continue
        if counts[name] > 1:
            unusable[name] = repeated(name, counts[name])
            continue
        found = values_of(place)
        if isinstance(found, str):
            unusable[name] = f"column {name!r} is of type {found}, but features are numbers or text."
        else:
            values[name] = found
    return FileColumns(tuple(names), values, unusable, rows)


def _typed_blocks(
    path: Path, wanted: Collection[str] | None, kept: Collection[str], rows_at_once: int
) -> Iterator[FileColumns]:
    schema = typed_schema(path)
    names = tuple(schema.names)
    wanted = names if wanted is None else wanted
    both = {*wanted, *kept}
    own = [name for name in dict.fromkeys(names) if name in both]
    start = 0
    for content in typed_blocks(path, own, rows_at_once):
        rows = RowNames("place", range(start + 1, start + len(content) + 1))

        def values_of(place: int, content: Any = content) -> Any:
            column = content.column(names[place])
            return typed_values(column) if names[place] in wanted else _objects(column.to_pylist())

        yield _columns(names, both, rows, values_of)
        start += len(content)
    if not start:
        empty = schema.empty_table()
        yield _columns(names, both, RowNames("place"), lambda place: typed_values(empty.column(place)))
