"""The file of the user with better labels: only the labels change that are worth changing."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from postmax.auditing.from_fit import FileAudit, new_labels
from postmax.data.label_column import encode_column, read_labels, write_labels
from postmax.data.own import is_table
from postmax.data.reading import ReadingOptions
from postmax.files import atomic_write

STEM = "corrected"
NAMES = (f"{STEM}.csv", f"{STEM}.tsv", f"{STEM}.txt", f"{STEM}.parquet", f"{STEM}.pq")


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
    unit = next(iter(found.audit.table))
    given = found.audit.table["given"].tolist()
    with atomic_write(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow([unit, "label"])
        rows = found.audit.table[unit].tolist()
        lines.writerows((name, labels.get(row, given[row])) for row, name in enumerate(rows))
        text.detach()  # closing it would close the file
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
