"""The file of the user with better labels: only the labels change that are worth changing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from postmax.auditing.from_fit import FileAudit, new_labels
from postmax.data.label_column import encode_column, read_labels, write_labels
from postmax.data.own import TABLES, is_table
from postmax.data.reading import ReadingOptions
from postmax.fitting.label_table import LabelTable

STEM = "corrected"
NAMES = tuple(f"{STEM}{suffix}" for suffix in sorted(TABLES))


def write_corrected(found: FileAudit, source: Path, reading: ReadingOptions, folder: Path) -> Path:
    """Write the source with corrected labels into a folder, and return the path.

    A table keeps its format and every byte but the labels that change. For images and arrays it is a CSV file with the
    name and the label of each row.

    Raises:
        DataError: If the table cannot be written back as it was.
    """
    labels = new_labels(found)
    if is_table(source):
        path = folder / f"{STEM}{source.suffix.lower()}"
        label = found.fit.dataset.table.label if found.fit.dataset.table is not None else reading.label
        _write_table(source, path, labels, label, reading)
        return path
    path = folder / f"{STEM}.csv"
    table = found.audit.table
    unit = next(iter(table))
    LabelTable({unit: table[unit], "label": found.audit.corrected()}).to_csv(path)
    return path


def _write_table(
    source: Path, path: Path, labels: Mapping[int, str], label: str | None, reading: ReadingOptions
) -> None:
    column = read_labels(source, label, decimal=reading.decimal, encoding=reading.encoding)
    # In Parquet, labels that are numbers stay numbers.
    typed = {str(name): name for name in encode_column(column, str(source)).classes}
    values = column.values.astype(object)
    for row, name in labels.items():
        values[row] = typed.get(name, name)
    write_labels(source, path, values, column=column.column, decimal=reading.decimal, encoding=reading.encoding)
