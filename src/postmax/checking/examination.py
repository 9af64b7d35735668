"""Look for everything that a person should know about data before training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from postmax.checking import catalogue
from postmax.checking.examined import Examined
from postmax.checking.finding import Finding, Findings
from postmax.checking.from_file import NOT_USABLE, of_file
from postmax.checking.from_memory import of_arrays, of_dataset
from postmax.data.dataset import Dataset
from postmax.data.number_text import Decimal
from postmax.data.reading import ReadingOptions
from postmax.data.table_encoder import Missing
from postmax.errors import InputError
from postmax.progress import Stage, tell


def check(
    rows: Any,
    labels: Any = None,
    *,
    label: str | None = None,
    drop: Sequence[str] = (),
    missing: Missing = "error",
    decimal: Decimal = ".",
    encoding: str | None = None,
    merge_labels: bool = False,
) -> Findings:
    """Return everything that a person should know about data before training. Nothing is changed.

    Args:
        rows: A file (CSV, Parquet, Arrow, `.npz`), a folder of images, a `Dataset`, an array (N, d) or a data frame.
        labels: One label for each row of an array or a data frame.
        label: The column of the labels of a file, or of a data frame without `labels`; see `postmax.data.read_table`,
            also for the other options.
        drop: Columns that are not features.
        missing: What is done with missing numbers.
        decimal: The sign before the decimals of a number.
        encoding: The encoding of a text file.
        merge_labels: Whether labels that differ only in case or white space are one class.

    Raises:
        DataError: If a file cannot be read at all.
        InputError: If rows and labels do not fit together.

    Example:
        >>> import numpy as np
        >>> rows = np.random.default_rng(0).normal(size=(200, 3))
        >>> labels = np.where(rows[:, 0] > 0, "yes", "no")
        >>> labels[:4] = ["YES", "no ", "No", "no"]
        >>> [finding.kind for finding in check(rows, labels)]
        ['spelling', 'spelling']
    """
    reading = ReadingOptions(label, tuple(drop), missing, decimal, encoding, merge_labels)
    if isinstance(rows, str | Path):
        if labels is not None:
            raise InputError("labels are for rows in memory. The labels of a file are in a column: label='…'.")
        return check_file(rows, reading)
    given = [name for name in reading.given if name not in ("label", "drop")]
    if given:
        raise InputError(f"{given[0]} is for files, and these rows are in memory.")
    if isinstance(rows, Dataset):
        return check_dataset(rows)
    if labels is None:
        if label is None:
            raise InputError("give the labels: check(rows, labels), or label='…' for a column of a data frame.")
        labels = rows[label]
    return examine(of_arrays(rows, labels, leave=(*drop, *([label] if label is not None else ()))))


def check_file(path: str | Path, reading: ReadingOptions | None = None) -> Findings:
    """Return the findings for a file or a folder of images. What keeps it from being used is among them.

    Raises:
        DataError: If so little of it can be read that nothing can be said about it.
    """
    examined, found = of_file(Path(path), reading or ReadingOptions())
    return examine(examined, found)


def check_dataset(dataset: Dataset) -> Findings:
    """Return the findings for data that are read already."""
    return examine(of_dataset(dataset))


def examine(data: Examined, before: Iterable[Finding] = ()) -> Findings:
    """Ask all detectors.

    Args:
        data: The data.
        before: What the reader has found.
    """
    names = catalogue.names()
    found = list(before)
    for place, name in enumerate(names):
        tell(Stage("looking for mistakes", place, len(names), "checks"))
        with np.errstate(over="ignore", invalid="ignore"):  # huge numbers are found by a detector of their own
            found += catalogue.get(name)(data)
    tell(Stage("looking for mistakes", len(names), len(names), "checks"))
    # That a column of names has too many different values need not be said if it is known to name the rows.
    explained = {column for finding in found if finding.kind != NOT_USABLE for column in finding.columns}
    found = [f for f in found if f.kind != NOT_USABLE or not f.columns or not {*f.columns} <= explained]
    # A simple model may not see what a column gives away.
    if any(finding.kind == "leak" for finding in found):
        found = [finding for finding in found if finding.kind != "cannot tell"]
    found.sort(key=lambda finding: finding.severity != "problem")
    return Findings(
        data.name, tuple(found), data.total, len(data), len(data.columns), sum(map(bool, data.counts.values()))
    )
