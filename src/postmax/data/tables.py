"""Read a data table of your own, CSV, Parquet or Arrow, as a data set."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from postmax.data.column_names import find_label, note_unknown
from postmax.data.columns import (
    Columns,
    FileColumns,
    is_csv,
    load_columns,
    note_unusable,
)
from postmax.data.dataset import Dataset
from postmax.data.decimal_signs import with_clear_decimals
from postmax.data.embedding.text_column import REFUSE
from postmax.data.label_text import label_values, merged, stripped
from postmax.data.notes import class_notes, column_notes, columns_that_name_rows
from postmax.data.number_text import Decimal, numbers
from postmax.data.problems import Problems
from postmax.data.reading import ReadingOptions, refuse_idle_for_file
from postmax.data.table_encoder import CategoryColumn, Missing, TableEncoder
from postmax.data.table_reading import TableReading
from postmax.data.typed_files import is_typed
from postmax.files import existing_file
from postmax.labels import EncodedLabels, encode_labels, label_problems

# Fewer rows may all have different labels by chance.
_FEW_ROWS = 20


def read_table(
    path: str | Path,
    *,
    label: str | None = None,
    drop: Collection[str] = (),
    categorical: Collection[str] = (),
    missing: Missing = "error",
    decimal: Decimal = ".",
    encoding: str | None = None,
    merge_labels: bool = False,
    text: str = REFUSE,
    encoder: TableEncoder | None = None,
    min_classes: int = 1,
    leave_out: bool = False,
) -> Dataset:
    r"""Return the rows of a CSV, Parquet or Arrow file as float32 features, with one column as labels.

    A column of numbers is one feature. A column of text has one feature for each category; a missing value is a
    category too. Nothing is scaled. White space around labels and categories does not count. What can be used but looks
    like a mistake, such as a column of row numbers, is in the `notes` of the result.

    Args:
        path: The file. CSV: a header line, then rows separated by comma, semicolon, tab or bar.
        label: The column that holds the labels; by default the one called label, labels, y, target, targets or class.
        drop: Columns that are not features, such as an identifier. With an encoder, the file need not have them.
        categorical: Columns of numbers that are categories.
        missing: What to do with missing numbers: "error" names their rows, "median" replaces them by the median of
            their column, and "keep" keeps them as NaN.
        decimal: The sign before the decimals of a number: a point or a comma.
        encoding: The encoding of a CSV file, such as "cp1252". None for UTF-8, or for UTF-16 with a byte-order mark.
        merge_labels: Whether labels that differ only in upper and lower case or white space are one class, which gets
            the most frequent of their names.
        text: What to do with free text of more than 100 different values: "refuse" it, "embed" it with the usual model
            for texts, or the name of the model to embed it with; see docs/embedding.md.
        encoder: The encoder of an earlier table, to turn columns into the same features.
        min_classes: How many classes the labels must have at least.
        leave_out: Whether columns that cannot be features, such as names, are left out with a note. By default they are
            an error.

    Raises:
        DataError: If the file cannot be read, or if a column cannot be turned into features. The message lists all
            problems of the file.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "flowers.csv"
        >>> _ = path.write_text("petal;colour;label\n1,5;red;rose\n2,0;white;lily\n")
        >>> flowers = read_table(path, decimal=",")
        >>> flowers.inputs, flowers.labels, flowers.classes
        (tensor([[1.5000, 1.0000, 0.0000],
                [2.0000, 0.0000, 1.0000]]), tensor([1, 0]), ('lily', 'rose'))
    """
    path = existing_file(path)
    reading = ReadingOptions(label, tuple(drop), missing, decimal, encoding, merge_labels)
    with Problems(path, dropped=reading.drop, leave_out=leave_out) as problems:
        file = _load(path, reading, problems)
        table = understand(file, reading, problems, categorical, encoder, min_classes, text)
        if leave_out and (ids := columns_that_name_rows(table.columns, _texts(table, categorical), table.decimal)):
            problems.left_out |= {
                column: f"column {column!r} looks like names or numbers of the rows" for column in ids
            }
            file = replace(file, values={column: v for column, v in file.values.items() if column not in ids})
            table = understand(file, reading, problems, categorical, encoder, min_classes, text)
        if problems.left_out and not table.encoder.columns:
            problems.stop(f"no column can be a feature: {' '.join(problems.left_out.values())}")
    name, encoded = table.label, table.encoded
    assert encoded is not None and name is not None  # noqa: S101, PT018  (else there was a problem)
    kept = {name: values for name, values in table.columns.items() if name not in problems.left_out}
    notes = column_notes(kept, _texts(table, categorical), reading.drop, table.decimal, file.rows)
    notes += tuple(f"{reason.rstrip('.')}: it is left out" for reason in problems.left_out.values())
    dropped = tuple(column for column in file.names if column in drop or column in problems.left_out)
    return Dataset(
        name=path.stem,
        inputs=table.features,
        labels=encoded.codes,
        classes=tuple(map(str, encoded.classes)),
        notes=notes + class_notes(encoded.classes, encoded.codes),
        table=TableReading.of(name, dropped, table.encoder, table.features),
        rows=file.rows,
    )


def fit_encoder(
    path: str | Path,
    *,
    label: str | None = None,
    drop: Collection[str] = (),
    missing: Missing = "error",
    decimal: Decimal = ".",
    encoding: str | None = None,
    merge_labels: bool = False,
) -> TableEncoder:
    """Return the encoder with which `read_table` turns the columns of this file into features."""
    path = existing_file(path)
    reading = ReadingOptions(label, tuple(drop), missing, decimal, encoding, merge_labels)
    with Problems(path, dropped=reading.drop) as problems:
        _, features = _choose(_load(path, reading, problems), reading, (), problems, is_first=True)
        decimal, features = with_clear_decimals(features, (), decimal, problems)
        return TableEncoder.fitted(features, (), missing, decimal, problems)


@dataclass(frozen=True)
class Understood:
    """What became of the columns of a file. What could not be used is noted elsewhere.

    Attributes:
        label: The column that holds the labels; None if it is not clear.
        columns: The other columns that can be used.
        decimal: The sign before the decimals of a number.
        encoder: What turns these columns into features.
        features: float32 (N, d).
        encoded: The labels; None if they cannot be used.
    """

    label: str | None
    columns: Columns
    decimal: Decimal
    encoder: TableEncoder
    features: Tensor
    encoded: EncodedLabels | None


def understand(
    file: FileColumns,
    reading: ReadingOptions,
    problems: Problems,
    categorical: Collection[str] = (),
    encoder: TableEncoder | None = None,
    min_classes: int = 1,
    text: str = REFUSE,
) -> Understood:
    """Return the labels and the features of a file. Whatever is wrong with them is noted, all of it.

    Args:
        file: The columns.
        reading: How they are read.
        problems: Gets what is wrong.
        categorical: Columns of numbers that are categories.
        encoder: The encoder of an earlier table, to turn columns into the same features.
        min_classes: How many classes the labels must have at least.
        text: What to do with free text; see `read_table`.
    """
    name, features = _choose(file, reading, categorical, problems, is_first=encoder is None)
    usable, decimal = features, reading.decimal
    if encoder is None:
        decimal, usable = with_clear_decimals(features, categorical, decimal, problems)
        usable = _as_numbers(usable, categorical, decimal)
        features = {**features, **usable}
        encoder = TableEncoder.fitted(usable, categorical, reading.missing, decimal, problems, text)
    inputs = encoder.encoded(usable, decimal, file.rows, problems)
    encoded = _encode_labels(file, name, decimal, reading.merge_labels, min_classes, problems)
    return Understood(name, features, decimal, encoder, inputs, encoded)


def _texts(table: Understood, categorical: Collection[str]) -> set[str]:
    """Return the columns that are read as text."""
    return {column.name for column in table.encoder.columns if isinstance(column, CategoryColumn)} - {*categorical}


def _as_numbers(columns: Columns, categorical: Collection[str], decimal: Decimal) -> Columns:
    """Return columns of text as numbers where all of their values are, so that text is turned into numbers once."""
    found = {name: None if name in categorical else numbers(values, decimal) for name, values in columns.items()}
    return {name: values if (known := found[name]) is None else known for name, values in columns.items()}


def _load(path: Path, reading: ReadingOptions, problems: Problems) -> FileColumns:
    if is_csv(path) or is_typed(path):
        refuse_idle_for_file(path, reading)
    return load_columns(path, reading.encoding, reading.drop, problems)


def _choose(
    file: FileColumns, reading: ReadingOptions, categorical: Collection[str], problems: Problems, *, is_first: bool
) -> tuple[str | None, Columns]:
    """Return the column of the labels, and the features. Wrong names are noted."""
    if is_first:  # else the names are those of the earlier table, and this one need not have them
        note_unknown(reading.drop, "drop", file.names, problems)
    note_unknown(categorical, "categorical", file.names, problems)
    if reading.label is not None and reading.label in reading.drop:
        problems.stop(f"column {reading.label!r} holds the labels, so it cannot be dropped.")
    left = [name for name in file.names if name not in reading.drop]
    label = find_label(left, reading.label, problems, lambda: file.values)
    note_unusable(file, problems, label)
    features = {name: values for name, values in file.values.items() if name != label}
    if not features and not problems.found:
        problems.stop(f"it has no columns but the label {label!r}, so it has no features.")
    return label, features


def _encode_labels(
    file: FileColumns, name: str | None, decimal: Decimal, merge: bool, min_classes: int, problems: Problems
) -> EncodedLabels | None:
    """Return the labels as class indices; None if they cannot be used, which is noted."""
    if name is None or name not in file.values:
        return None
    texts = stripped(file.values[name])
    if merge:
        texts = merged(texts)
    # The columns of other files have types, so a text there is not a number.
    values = label_values(texts, decimal) if file.rows.kind == "line" else texts
    wrong = label_problems(values, file.rows) if len(values) else []
    for problem in wrong:
        problems.add(f"column {name!r}: {problem}")
    if wrong or not len(values):
        return None
    encoded = encode_labels(values)
    if len(encoded.classes) < min_classes:
        only = f"one class only, {str(encoded.classes[0])!r}" if len(encoded.classes) == 1 else "too few classes"
        problems.add(f"column {name!r} has {only}: a classifier needs at least two.")
    if min_classes > 1 and len(encoded.classes) == len(values) >= _FEW_ROWS:
        problems.add(
            f"column {name!r} has a label of its own for each of the {len(values):,} rows, such as {str(values[0])!r}: "
            "it names the rows, or is a measurement, and not a class."
        )
    return encoded
