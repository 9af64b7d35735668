"""Tables whose columns have types: Parquet and Arrow files, whole or in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from postmax.errors import DataError
from postmax.extras import need
from postmax.files import existing_file

PARQUET = frozenset({".parquet", ".pq"})
# Feather (version 2) is Arrow under another name.
ARROW = frozenset({".arrow", ".feather", ".ipc"})


def is_typed(path: str | Path) -> bool:
    """Return whether the name of a file is that of a Parquet or an Arrow file."""
    return Path(path).suffix.lower() in PARQUET | ARROW


def kind_of(path: str | Path) -> str:
    """Return what a file is by its name, in words."""
    return "a Parquet file" if Path(path).suffix.lower() in PARQUET else "an Arrow file"


def read_typed(path: Path) -> Any:
    """Return a Parquet or Arrow file as a `pyarrow.Table`.

    Raises:
        DataError: If the file is damaged or of another format.
    """
    with _errors_of(path):
        if path.suffix.lower() in PARQUET:
            return need("pyarrow.parquet", "data").read_table(existing_file(path), partitioning=None)
        with _reader(path) as (schema, batches):
            return need("pyarrow", "data").Table.from_batches(list(batches), schema=schema)


def typed_schema(path: Path) -> Any:
    """Return the `pyarrow.Schema` of a Parquet or Arrow file: the names and the types of its columns.

    Raises:
        DataError: If the file is damaged or of another format.
    """
    with _errors_of(path):
        if path.suffix.lower() in PARQUET:
            with need("pyarrow.parquet", "data").ParquetFile(existing_file(path)) as file:
                return file.schema_arrow
        with _reader(path) as (schema, _):
            return schema


def typed_blocks(path: Path, columns: Sequence[str], rows_at_once: int) -> Iterator[Any]:
    """Yield the rows of a Parquet or Arrow file as a `pyarrow.Table` for each block.

    An Arrow file is mapped into memory, so that columns that are not asked for are not read.

    Args:
        path: The file.
        columns: The names of the columns to read. Of a name that several columns have, all are read.
        rows_at_once: How many rows a block has; it may have fewer.

    Raises:
        DataError: If the file is damaged or of another format.
    """
    table = need("pyarrow", "data").Table
    with _errors_of(path):
        if path.suffix.lower() in PARQUET:
            with need("pyarrow.parquet", "data").ParquetFile(existing_file(path)) as file:
                for batch in file.iter_batches(batch_size=rows_at_once, columns=list(columns)):
                    yield table.from_batches([batch])
            return
        with _reader(path) as (schema, batches):
            own = [place for place, name in enumerate(schema.names) if name in columns]
            for batch in batches:
                for start in range(0, batch.num_rows, rows_at_once):
                    yield table.from_batches([batch.slice(start, rows_at_once)]).select(own)


def typed_values(column: Any) -> npt.NDArray[Any] | str:
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


def write_typed(table: Any, file: IO[bytes], suffix: str) -> None:
    """Write a `pyarrow.Table` into a file whose name has this suffix."""
    if suffix.lower() in PARQUET:
        need("pyarrow.parquet", "data").write_table(table, file)
        return
    with need("pyarrow.ipc", "data").new_file(file, table.schema) as writer:
        writer.write_table(table)


@contextmanager
def _reader(path: Path) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Open an Arrow file: of the file format, or of the stream format, which has no directory of its parts."""
    arrow, ipc = need("pyarrow", "data"), need("pyarrow.ipc", "data")
    with arrow.memory_map(str(existing_file(path))) as mapped:
        try:
            file = ipc.open_file(mapped)
        except arrow.ArrowInvalid:
            mapped.seek(0)
            stream = ipc.open_stream(mapped)
            yield stream.schema, iter(stream)
            return
        yield file.schema, map(file.get_batch, range(file.num_record_batches))


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    arrow = need("pyarrow", "data")
    try:
        yield
    except (arrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is not {kind_of(path)}, or it is damaged ({error}).") from error
