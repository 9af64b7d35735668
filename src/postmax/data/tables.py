"""Read a data table of your own, CSV or Parquet, as a data set."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from postmax.data.columns import Columns, is_csv, label_column, label_values, read_columns
from postmax.data.dataset import Dataset
from postmax.data.table_encoder import Missing, TableEncoder
from postmax.data.table_reading import TableReading
from postmax.errors import DataError
from postmax.labels import encode_labels


def read_table(
    path: str | Path,
    *,
    label: str | None = None,
    drop: Collection[str] = (),
    categorical: Collection[str] = (),
    missing: Missing = "error",
    encoder: TableEncoder | None = None,
) -> Dataset:
    r"""Return the rows of a CSV or Parquet file as float32 features, with one column as labels.

    A column of numbers is one feature. A column of text has one feature for each category; a missing value is a
    category too. Nothing is scaled.

    Args:
        path: The file. CSV: a header line, then rows separated by comma, semicolon, tab or bar, UTF-8.
        label: The column that holds the labels; by default the one called label, labels, y, target, targets or class.
        drop: Columns that are not features, such as an identifier.
        categorical: Columns of numbers that are categories.
        missing: What to do with missing numbers: "error" names their rows, "median" replaces them by the median of
            their column, and "keep" keeps them as NaN.
        encoder: The encoder of an earlier table, to turn columns into the same features.

    Raises:
        DataError: If the file cannot be read, or if a column cannot be turned into features.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "flowers.csv"
        >>> _ = path.write_text("petal;colour;label\n1.5;red;rose\n2.0;white;lily\n")
        >>> flowers = read_table(path)
        >>> flowers.inputs, flowers.labels, flowers.classes
        (tensor([[1.5000, 1.0000, 0.0000],
                [2.0000, 0.0000, 1.0000]]), tensor([1, 0]), ('lily', 'rose'))
    """
    path = Path(path).expanduser()
    columns = read_columns(path)
    label, features = _label_and_features(columns, path, label, drop, categorical)
    if encoder is None:
        encoder = TableEncoder.fit(features, categorical=categorical, missing=missing, where=str(path))
    labels = label_values(columns[label]) if is_csv(path) else columns[label]
    encoded = encode_labels(labels, where=f"{path}: column {label!r}")
    inputs = encoder.encode(features, where=str(path))
    return Dataset(
        name=path.stem,
        inputs=inputs,
        labels=encoded.codes,
        classes=tuple(map(str, encoded.classes)),
        table=TableReading.of(label, tuple(name for name in columns if name in drop), encoder, inputs),
    )


def fit_encoder(
    path: str | Path,
    *,
    label: str | None = None,
    drop: Collection[str] = (),
    missing: Missing = "error",
) -> TableEncoder:
    """Return the encoder with which `read_table` turns the columns of this file into features."""
    path = Path(path).expanduser()
    _, features = _label_and_features(read_columns(path), path, label, drop, ())
    return TableEncoder.fit(features, missing=missing, where=str(path))


def _label_and_features(
    columns: Columns, path: Path, label: str | None, drop: Collection[str], categorical: Collection[str]
) -> tuple[str, Columns]:
    label = label_column(columns, label, path)
    unknown = sorted({*drop, *categorical} - {*columns})
    if unknown:
        raise DataError(f"{path} has no column {unknown[0]!r}; its columns are {', '.join(columns)}.")
    features = {name: values for name, values in columns.items() if name != label and name not in drop}
    if not features:
        raise DataError(f"{path} has no columns but the label {label!r}, so it has no features.")
    return label, features
