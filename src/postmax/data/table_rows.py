"""The rows of tables without labels: CSV, Parquet and Arrow files, block by block, and data frames."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from postmax.data.array_rows import as_rows
from postmax.data.column_blocks import column_blocks
from postmax.data.column_names import listing
from postmax.data.columns import FileColumns
from postmax.data.frames import columns_of_frame
from postmax.data.problems import Problems
from postmax.data.reading import refuse_idle_for_file
from postmax.data.row_form import NewReading, NewRows, OpenRows, RowForm
from postmax.data.table_reading import TableReading
from postmax.errors import DataError
from postmax.registry import nearest
from postmax.row_names import INDICES
from postmax.wording import advice

_OPTIONS = ("drop", "missing", "decimal", "encoding", "unknown")


class _Block(NamedTuple):
    names: tuple[str, ...]
    rows: NewRows


def open_table(path: Path, form: RowForm, reading: NewReading, rows_at_once: int) -> OpenRows:
    """Return the rows of a CSV, Parquet or Arrow file. Columns are found by their names, in any order."""
    table = form.table
    if table is None:
        raise DataError(f"{path} is a table, but the model was trained on {form} without names. Give an .npz file.")
    refuse_idle_for_file(path, reading.given)
    blocks = _blocks(path, table, form, reading, rows_at_once)
    first = next(blocks)
    used = {column.name for column in table.encoder.columns}
    named = {*used, *table.dropped, table.label, *reading.drop, *reading.keep}

    def rows() -> Iterator[NewRows]:
        if len(first.rows.inputs):
            yield first.rows
        yield from (block.rows for block in blocks)

    return OpenRows(rows(), tuple(name for name in dict.fromkeys(first.names) if name not in named))


def rows_of_frame(frame: Any, form: RowForm, reading: NewReading) -> NewRows:
    """Return the rows of a data frame. Its columns are found by their names, or by their places if there are none."""
    names, values_of = columns_of_frame(frame)
    if form.table is None:
        matrix = np.column_stack([values_of(name) for name in names]) if names else np.zeros((0, 0))
        return NewRows(as_rows(matrix, form.shape, form.fills(reading), "the data frame"), INDICES)
    needed = {column.name for column in form.table.encoder.columns}
    problems = Problems("the data frame", reading.drop, options=_OPTIONS)
    with problems:
        values = {name: values_of(name) for name in names if name in needed}
        file = FileColumns(tuple(names), values, {}, INDICES)
        _check_columns(file, form.table, reading, problems)
        return NewRows(_encoded(file, form.table, form, reading, problems), INDICES)


def _blocks(path: Path, table: TableReading, form: RowForm, reading: NewReading, rows_at_once: int) -> Iterator[_Block]:
    """Yield the blocks of a file. The problems of a block, and all problems with columns, are in one error."""
    problems = Problems(path, reading.drop, options=_OPTIONS)
    wanted = {column.name for column in table.encoder.columns}
    encoding = reading.encoding or form.encoding
    count, first = 0, True
    for file in column_blocks(path, encoding, wanted, rows_at_once, problems, kept=reading.keep):
        with problems:
            if first:
                _check_columns(file, table, reading, problems)
            inputs = _encoded(file, table, form, reading, problems)
        count, first = count + len(inputs), False
        yield _Block(file.names, NewRows(inputs, file.rows, {name: file.values[name] for name in reading.keep}))
    if not count:
        raise DataError(f"{path}: it has no rows.")


def _check_columns(file: FileColumns, table: TableReading, reading: NewReading, problems: Problems) -> None:
    """Note the columns that are missing or cannot be used, and those that an option names by mistake."""
    table.encoder.note_absent(file.names, problems)
    for reason in file.unusable.values():
        problems.add(reason)
    for name in reading.keep:
        if name not in file.names:
            near = nearest(name, file.names)
            hint = f"Its columns are {listing(file.names)}." if near is None else f"Did you mean {near!r}?"
            problems.add(f"there is no column {name!r}, which {advice(python='keep=', command='--keep')} names. {hint}")
    for name in reading.drop:
        if any(name == column.name for column in table.encoder.columns):
            problems.add(f"column {name!r} cannot be dropped: the model was trained with it.")


def _encoded(file: FileColumns, table: TableReading, form: RowForm, reading: NewReading, problems: Problems) -> Tensor:
    """Return the features of some rows; none if columns are missing, which is noted already."""
    if any(column.name not in file.values for column in table.encoder.columns):
        return torch.zeros(0, *form.shape)
    encoder = table.encoder.with_missing("keep" if form.fills(reading) else "error")
    return encoder.encoded(file.values, reading.decimal or form.decimal, file.rows, problems, reading.unknown)
