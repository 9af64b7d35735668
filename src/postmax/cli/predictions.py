"""Write predictions block by block: CSV, Parquet, or a line of JSON for each row."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from postmax.errors import DataError, InputError
from postmax.extras import need
from postmax.files import atomic_write
from postmax.runs.predictor import Predicted

Write = Callable[[Predicted], None]

PREDICTION = "prediction"
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_PARQUET = (".parquet", ".pq")


def check_name(out: Path | None) -> None:
    """Check that the name of an output file says its format.

    Raises:
        InputError: If it does not.
    """
    if out is not None and out.suffix.lower() not in (*_DELIMITERS, *_PARQUET):
        raise InputError(f"{out}: predictions are written to .csv, .tsv and .parquet files.")


def columns_of(classes: Sequence[str], kept: Sequence[str]) -> list[str]:
    """Return the names of the columns of the output.

    Raises:
        InputError: If a kept column has the name of another one.

    Example:
        >>> columns_of(["cat", "dog"], ["id"])
        ['id', 'prediction', 'p_cat', 'p_dog']
    """
    own = [PREDICTION, *(f"p_{name}" for name in classes)]
    taken = next((name for name in kept if name in own), None)
    if taken is not None:
        raise InputError(f"--keep {taken}: the output has a column of this name. Rename it in the file.")
    return [*kept, *own]


@contextmanager
def writing(out: Path | None, classes: Sequence[str], kept: Sequence[str], *, as_json: bool) -> Iterator[Write]:
    """Give a function that writes predictions. A file appears when it is complete, or not at all.

    Args:
        out: The file; None for standard output.
        classes: The names of the classes.
        kept: The names of the columns that are copied.
        as_json: Write a line of JSON for each row, if the output is standard output.
    """
    columns = columns_of(classes, kept)
    if out is None:
        yield _json_lines(classes) if as_json else _csv(sys.stdout, columns, ",")
        sys.stdout.flush()
        return
    with atomic_write(out) as file:
        if out.suffix.lower() in _PARQUET:
            with _parquet(file, columns) as write:
                yield write
            return
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield _csv(text, columns, _DELIMITERS[out.suffix.lower()])
        text.detach()  # closing it would close the file


def _csv(stream: Any, columns: Sequence[str], delimiter: str) -> Write:
    lines = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    header = [columns]  # it is written with the first rows, so that an error about them leaves no output

    def write(found: Predicted) -> None:
        if header:
            lines.writerow(header.pop())
        lines.writerows(zip(*_texts(found), strict=True))
        stream.flush()

    return write


def _texts(found: Predicted) -> list[Sequence[Any]]:
    """Return the columns as texts. A probability has as many digits as it takes to read back the same number."""
    arrow = need("pyarrow", "data")
    shares = [arrow.array(column).cast(arrow.string()).to_pylist() for column in found.probabilities.T]
    kept = [["" if cell != cell else cell for cell in values] for values in found.kept.values()]  # NaN is missing
    return [*kept, found.classes.tolist(), *shares]


def _json_lines(classes: Sequence[str]) -> Write:
    def write(found: Predicted) -> None:
        kept = list(zip(*found.kept.values(), strict=True)) or [()] * len(found.classes)
        for cells, name, shares in zip(kept, found.classes.tolist(), found.probabilities.tolist(), strict=True):
            row = dict(zip(found.kept, map(_plain, cells), strict=True))
            row |= {PREDICTION: name, "probabilities": dict(zip(classes, shares, strict=True))}
            sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")

    return write


def _plain(cell: Any) -> Any:
    """Return a cell as JSON knows it; dates and the like as text, missing numbers as null."""
    cell = cell.item() if hasattr(cell, "item") else cell
    if isinstance(cell, float) and cell != cell:
        return None
    return cell if isinstance(cell, str | int | float | None) else str(cell)


@contextmanager
def _parquet(file: IO[bytes], columns: Sequence[str]) -> Iterator[Write]:
    arrow, parquet = need("pyarrow", "data"), need("pyarrow.parquet", "data")
    writers: list[Any] = []

    def write(found: Predicted) -> None:
        kept = [arrow.array(values, from_pandas=True) for values in found.kept.values()]
        arrays = [*kept, arrow.array(found.classes.tolist()), *map(arrow.array, found.probabilities.T)]
        table = arrow.Table.from_arrays(arrays, names=list(columns))
        if not writers:
            writers.append(parquet.ParquetWriter(file, table.schema))
        try:
            writers[0].write_table(table.cast(writers[0].schema))
        except arrow.ArrowInvalid as error:
            raise DataError(f"a kept column changes its type within the file: {error}.") from error

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()
