"""Read the labels of a data table, and write other labels into it while all other cells stay the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from postmax.data.column_names import find_label
from postmax.data.columns import is_csv, repeated
from postmax.data.csv_text import parse_csv, quote
from postmax.data.label_text import label_values, merged, stripped
from postmax.data.number_text import Decimal
from postmax.data.problems import Problems
from postmax.data.reading import ReadingOptions, refuse_idle_for_file
from postmax.data.typed_files import is_typed, read_typed, write_typed
from postmax.errors import DataError
from postmax.extras import need
from postmax.files import atomic_write, existing_file, load_arrays
from postmax.labels import EncodedLabels, encode_labels
from postmax.row_names import INDICES, PLACES, RowNames

_EXACT = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


@dataclass(frozen=True)
class LabelColumn:
    """The labels of a file.

    Attributes:
        values: One label for each row, of the type of the column. From CSV they are whole numbers if all of them are,
            otherwise text.
        column: The name of the column; None for an `.npy` file, which has only labels.
        rows: How messages call the rows.
        decimal: The sign before the decimals of a number.
    """

    values: npt.NDArray[Any]
    column: str | None
    rows: RowNames = INDICES
    decimal: Decimal = "."


def read_labels(
    path: str | Path,
    column: str | None = None,
    *,
    decimal: Decimal = ".",
    encoding: str | None = None,
    merge_labels: bool = False,
) -> LabelColumn:
    r"""Return the labels in a CSV, Parquet, Arrow or `.npy` file.

    Args:
        path: The file.
        column: The name of the column; by default the only column, or the one called label, labels, y, target, targets
            or class.
        decimal: The sign before the decimals of a number: a point or a comma.
        encoding: The encoding of a CSV file. None for UTF-8, or for UTF-16 with a byte-order mark.
        merge_labels: Whether labels that differ only in upper and lower case or white space get the most frequent of
            their names.

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
    refuse_idle_for_file(path, ReadingOptions(column, decimal=decimal, encoding=encoding, merge_labels=merge_labels))
    if is_csv(path):
        with Problems(path, label="column") as problems:
            table = parse_csv(path.read_bytes(), encoding, problems)
            place = _place(table.header, column, problems, lambda i: np.array(table.column(i), dtype=object))
            if not table.rows and not problems.found:
                problems.stop("it has a header but no rows.")
        texts = np.array(table.column(place), dtype=object)
        numbers = label_values(texts, decimal)
        # As a number 1.50 would be written back as 1.5. Whole numbers are written back as they were.
        values = numbers if numbers.dtype.kind == "i" else texts
        values = merged(stripped(values)) if merge_labels else values
        return LabelColumn(values, table.header[place], RowNames("line", table.lines), decimal)
    if is_typed(path):
        content = read_typed(path)
        with Problems(path, label="column") as problems:
            place = _place(content.column_names, column, problems, lambda i: content.column(i).to_numpy())
        values = np.array(content.column(place).to_pylist())
        values = merged(stripped(values)) if merge_labels else values
        return LabelColumn(values, content.column_names[place], PLACES, decimal)
    return LabelColumn(_read_npy(path), None, PLACES, decimal)


def encode_column(column: LabelColumn, where: str) -> EncodedLabels:
    """Return class indices for a column. Classes are sorted as numbers if all labels are, and keep their text.

    White space around labels does not count.

    Example:
        >>> encode_column(LabelColumn(np.array(["10.0", "9.0 "], dtype=object), "y"), "example").classes
        ('9.0', '10.0')
    """
    where = where if column.column is None else f"{where}: column {column.column!r}"
    texts = stripped(column.values)
    numbers = comparable(column.values, column.decimal)
    encoded = encode_labels(numbers, where=where, rows=column.rows)
    if texts.dtype != object or numbers.dtype == object:
        return encoded
    written = dict(zip(encoded.codes.tolist(), texts.tolist(), strict=True))
    return EncodedLabels(encoded.codes, tuple(written[code] for code in range(len(encoded.classes))))


def comparable(values: npt.NDArray[Any], decimal: Decimal = ".") -> npt.NDArray[Any]:
    """Return texts as numbers if all of them are, so that 3 and 3.0 are the same label. Otherwise return the texts."""
    values = stripped(values)
    texts = values.dtype == object and all(isinstance(value, str) for value in values)
    return label_values(values, decimal) if texts else values


def relabelled(column: LabelColumn, encoded: EncodedLabels, codes: Tensor) -> npt.NDArray[Any]:
    """Return the values of a column with other classes. Rows whose class stays keep their value as it was written."""
    changed = (codes != encoded.codes).numpy()
    new = encoded.decode(codes)
    values = column.values.astype(object)
    values[changed] = new[changed]
    return values


def _place(
    names: Sequence[str], given: str | None, problems: Problems, values: Callable[[int], npt.NDArray[Any]]
) -> int:
    """Return the place of the label column. If it is not clear, that is noted."""
    found = find_label(names, given, problems, lambda: {name: values(place) for place, name in enumerate(names)})
    if found is not None and names.count(found) > 1:
        problems.add(repeated(found, names.count(found)))
    return 0 if found is None else list(names).index(found)


def write_labels(
    source: str | Path,
    out: str | Path,
    values: Sequence[Any] | npt.NDArray[Any],
    *,
    column: str | None = None,
    decimal: Decimal = ".",
    encoding: str | None = None,
) -> None:
    """Write `source` to `out` with other labels, in the same format. The file appears when it is complete.

    In CSV all other cells keep their text and quotes, lines keep their endings, and the file keeps its encoding. In
    Parquet and Arrow all other columns, the types and the metadata stay the same.

    Args:
        source: The file with everything else.
        out: The file to write; it may be `source`.
        values: One label for each row.
        column: The name of the column, see `read_labels`.
        decimal: The sign before the decimals of labels that are numbers.
        encoding: The encoding of a CSV file, see `read_labels`.

    Raises:
        DataError: If there are more or fewer values than rows, or they do not fit the type of the column, or the
            encoding of the file.
    """
    source, out = existing_file(source), Path(out).expanduser()
    if out.suffix.lower() != source.suffix.lower():
        raise DataError(
            f"{out}: labels are written in the format of {source.name}, so the name must end in {source.suffix}."
        )
    labels = np.asarray(values).tolist()
    if is_csv(source):
        texts = [str(v).replace(".", decimal) if isinstance(v, float) else str(v) for v in labels]
        content = _replaced_in_csv(source, texts, column, encoding)
        with atomic_write(out) as file:
            file.write(content)
    elif is_typed(source):
        table = _replaced_in_typed(read_typed(source), labels, column, source)
        with atomic_write(out) as file:
            write_typed(table, file, out.suffix)
    else:
        old = _read_npy(source)
        _check_count(labels, len(old), source)
        new = np.asarray(labels).astype(old.dtype)
        if new.tolist() != labels:
            raise DataError(f"{source} holds {old.dtype}, which cannot represent all of the new labels.")
        with atomic_write(out) as file:
            np.save(file, new, allow_pickle=False)


def _replaced_in_csv(source: Path, labels: list[str], column: str | None, encoding: str | None) -> bytes:
    content = source.read_bytes()
    with Problems(source, label="column") as problems:
        table = parse_csv(content, encoding, problems)
        place = _place(table.header, column, problems, lambda i: np.array(table.column(i), dtype=object))
    _check_count(labels, len(table.rows), source)
    # Some encodings have several ways to write the same text.
    if table.codec not in _EXACT and table.to_text().encode(table.codec) != content:
        raise DataError(f"{source}: text in {table.codec} cannot be written back as it was. Save it as UTF-8 first.")
    rows = [row.copy() for row in table.rows]
    for row, old, label in zip(rows, table.column(place), labels, strict=True):
        if old != label:  # a label that does not change keeps its text
            row[place] = quote(label, table.delimiter, like=row[place])
    try:
        return replace(table, rows=rows).to_text().encode(table.codec)
    except UnicodeEncodeError as error:
        bad = error.object[error.start : error.end]
        raise DataError(f"{source} is {table.codec} text, which cannot hold {bad!r} of the new labels.") from error


def _replaced_in_typed(table: Any, labels: list[Any], column: str | None, source: Path) -> Any:
    _check_count(labels, len(table), source)
    arrow = need("pyarrow", "data")
    with Problems(source, label="column") as problems:
        place = _place(table.column_names, column, problems, lambda i: table.column(i).to_numpy())
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
