"""Read the columns of CSV and Parquet files in blocks of rows, so that a file may be larger than the memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from postmax.data.columns import FileColumns, is_csv, is_parquet, parquet_values, repeated
from postmax.data.csv_blocks import CsvBlock, csv_blocks
from postmax.data.problems import Problems
from postmax.errors import DataError
from postmax.extras import need
from postmax.files import existing_file
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
    """Yield the wanted columns of a CSV or Parquet file, block by block, and one empty block if there are no rows.

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
    if not is_parquet(path):
        raise DataError(f"{path}: data tables are read from CSV and Parquet files.")
    yield from _parquet_blocks(path, wanted, kept, rows_at_once)


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


def _parquet_blocks(
    path: Path, wanted: Collection[str] | None, kept: Collection[str], rows_at_once: int
) -> Iterator[FileColumns]:
    arrow, parquet = need("pyarrow", "data"), need("pyarrow.parquet", "data")
    try:
        with parquet.ParquetFile(existing_file(path)) as file:
            names = tuple(file.schema_arrow.names)
            wanted = names if wanted is None else wanted
            both = {*wanted, *kept}
            own = [name for name in dict.fromkeys(names) if name in both]
            start = 0
            for batch in file.iter_batches(batch_size=rows_at_once, columns=own):
                content = arrow.Table.from_batches([batch])
                rows = RowNames("place", range(start + 1, start + len(content) + 1))

                def values_of(place: int, content: Any = content) -> Any:
                    name = names[place]
                    column = content.column(name)
                    return parquet_values(column) if name in wanted else _objects(column.to_pylist())

                yield _columns(names, both, rows, values_of)
                start += len(content)
            if not start:
                empty = file.schema_arrow.empty_table()
                yield _columns(names, both, RowNames("place"), lambda place: parquet_values(empty.column(place)))
    except (arrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is not a Parquet file, or it is damaged ({error}).") from error
