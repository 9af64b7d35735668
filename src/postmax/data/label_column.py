"""Read the labels of a data table, and write other labels into it while all other cells stay the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from postmax.data.columns import is_csv, is_parquet, label_column, label_values, read_parquet
from postmax.data.csv_text import CsvTable, quote, read_csv_text
from postmax.data.files import existing_file
from postmax.errors import DataError
from postmax.extras import need
from postmax.files import atomic_write, load_arrays
from postmax.labels import EncodedLabels, encode_labels


@dataclass(frozen=True)
class LabelColumn:
    """The labels of a file.

    Attributes:
        values: One label for each row, of the type of the column. From CSV they are whole numbers if all of them are,
            otherwise text.
        column: The name of the column; None for an `.npy` file, which has only labels.
    """

    values: npt.NDArray[Any]
    column: str | None


def read_labels(path: str | Path, column: str | None = None) -> LabelColumn:
    r"""Return the labels in a CSV, Parquet or `.npy` file.

    Args:
        path: The file.
        column: The name of the column; by default the only column, or the one called label, labels, y, target, targets
            or class.

    Raises:
        DataError: If the file is damaged, or if it is not clear which column holds the labels.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "pets.csv"
        >>> _ = path.write_text('name,class\nRex,dog\n"Tom, the",cat\n')
        >>> labels = read_labels(path)
        >>> labels.column, labels.values.tolist()
        ('class', ['dog', 'cat'])
        >>> write_labels(path, path, ["cat", "cat"])
        >>> path.read_text()
        'name,class\nRex,cat\n"Tom, the",cat\n'
    """
    path = existing_file(path)
    if is_csv(path):
        table = read_csv_text(path)
        column = label_column(table.header, column, path)
        texts = np.array(table.column(table.header.index(column)), dtype=object)
        numbers = label_values(texts)
        # As a number 1.50 would be written back as 1.5. Whole numbers are written back as they were.
        return LabelColumn(numbers if numbers.dtype.kind == "i" else texts, column)
    if is_parquet(path):
        content = read_parquet(path)
        column = label_column(content.column_names, column, path)
        return LabelColumn(np.array(content.column(column).to_pylist()), column)
    return LabelColumn(_read_npy(path), None)


def encode_column(column: LabelColumn, where: str) -> EncodedLabels:
    """Return class indices for a column. Classes are sorted as numbers if all labels are, and keep their text.

    Example:
        >>> encode_column(LabelColumn(np.array(["10.0", "9.0"], dtype=object), "y"), "example").classes
        ('9.0', '10.0')
    """
    numbers = comparable(column.values)
    encoded = encode_labels(numbers, where=where)
    if numbers is column.values:
        return encoded
    written = dict(zip(encoded.codes.tolist(), column.values.tolist(), strict=True))
    return EncodedLabels(encoded.codes, tuple(written[code] for code in range(len(encoded.classes))))


def comparable(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return texts as numbers if all of them are, so that 3 and 3.0 are the same label. Otherwise return the values."""
    return label_values(values) if values.dtype == object and all(isinstance(v, str) for v in values) else values


def write_labels(
    source: str | Path, out: str | Path, values: Sequence[Any] | npt.NDArray[Any], *, column: str | None = None
) -> None:
    """Write `source` to `out` with other labels, in the same format. The file appears when it is complete.

    In CSV all other cells keep their text and quotes, and lines keep their endings. In Parquet all other columns, the
    types and the metadata stay the same.

    Args:
        source: The file with everything else.
        out: The file to write; it may be `source`.
        values: One label for each row.
        column: The name of the column, see `read_labels`.

    Raises:
        DataError: If there are more or fewer values than rows, or they do not fit the type of the column.
    """
    source, out = existing_file(source), Path(out).expanduser()
    if out.suffix.lower() != source.suffix.lower():
        raise DataError(
            f"{out}: labels are written in the format of {source.name}, so the name must end in {source.suffix}."
        )
    labels = np.asarray(values).tolist()
    if is_csv(source):
        text = _replaced_in_csv(read_csv_text(source), labels, column, source).to_text()
        with atomic_write(out) as file:
            file.write(text.encode())
    elif is_parquet(source):
        table = _replaced_in_parquet(read_parquet(source), labels, column, source)
        with atomic_write(out) as file:
            need("pyarrow.parquet", "data").write_table(table, file)
    else:
        old = _read_npy(source)
        _check_count(labels, len(old), source)
        new = np.asarray(labels).astype(old.dtype)
        if new.tolist() != labels:
            raise DataError(f"{source} holds {old.dtype}, which cannot represent all of the new labels.")
        with atomic_write(out) as file:
            np.save(file, new, allow_pickle=False)


def _replaced_in_csv(table: CsvTable, labels: list[Any], column: str | None, source: Path) -> CsvTable:
    _check_count(labels, len(table.rows), source)
    place = table.header.index(label_column(table.header, column, source))
    rows = [row.copy() for row in table.rows]
    for row, old, label in zip(rows, table.column(place), labels, strict=True):
        if old != str(label):  # a label that does not change keeps its text
            row[place] = quote(str(label), table.delimiter, like=row[place])
    return replace(table, rows=rows)


def _replaced_in_parquet(table: Any, labels: list[Any], column: str | None, source: Path) -> Any:
    _check_count(labels, len(table), source)
    arrow = need("pyarrow", "data")
    place = table.column_names.index(label_column(table.column_names, column, source))
    field = table.schema.field(place)
    try:
        plain = field.type.value_type if arrow.types.is_dictionary(field.type) else field.type
        new = arrow.array(labels, type=plain).cast(field.type)
    except arrow.ArrowException:
        new = None
    if new is None or new.to_pylist() != labels:  # arrow would turn 1.5 into 1
        raise DataError(f"{source}: the labels do not fit column {field.name!r} of type {field.type}.")
    return table.set_column(place, field, new)


def _read_npy(path: Path) -> npt.NDArray[Any]:
    try:
        labels = load_arrays(path).get("array")
    except DataError as error:
        raise DataError(f"{path} is not a CSV, Parquet or complete .npy file of labels: {error}") from error
    if labels is None or labels.ndim != 1:
        raise DataError(f"{path} must hold one label for each row: one array of one dimension.")
    return labels


def _check_count(labels: list[Any], rows: int, source: Path) -> None:
    if len(labels) != rows:
        raise DataError(f"{source} has {rows} rows, but there are {len(labels)} labels.")
