"""Files as detectors see them. What keeps a file from being used is a finding too, if the rest of it can be read."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from postmax.checking.examined import Codes, Examined, counted
from postmax.checking.file_sample import FileSample
from postmax.checking.finding import Finding
from postmax.checking.from_memory import as_column, of_dataset
from postmax.data.arrays import read_npz
from postmax.data.column_blocks import column_blocks
from postmax.data.column_names import find_label
from postmax.data.columns import FileColumns
from postmax.data.image_files import image_size, one_size
from postmax.data.image_folder import all_images, read_image_folder
from postmax.data.number_text import Decimal, numbers
from postmax.data.own import is_table, read_own
from postmax.data.problems import Problems, in_words
from postmax.data.reading import ReadingOptions, refuse_idle_for_file
from postmax.data.tables import understand
from postmax.errors import DataError
from postmax.files import existing_file
from postmax.labels import is_missing_label, label_problems
from postmax.progress import Stage, tell

# The kind of a finding that a reader has made, and because of which a training would be refused.
NOT_USABLE = "not usable"
_ROWS_AT_ONCE = 10_000
# Images are looked at in this size, in which they need little memory and copies are still alike.
_SIDE = 32
# Of large folders, the sizes of so many images are looked at.
_SIZES = 1000


def of_file(path: Path, reading: ReadingOptions) -> tuple[Examined, list[Finding]]:
    """Return the content of a file or folder, and what keeps it from being used as it is.

    Raises:
        DataError: If so little of it can be read that nothing can be said about it.
        InputError: If an option has no meaning for a file of this kind.
    """
    path = path.expanduser()
    if path.is_dir() and not is_table(path):
        refuse_idle_for_file(path, reading)
        dataset = read_image_folder(path, size=_SIDE)
        unread = [Finding("unreadable images", f"{note}.", "Replace or delete them.") for note in dataset.notes]
        return of_dataset(dataset), [*unread, *_sizes(path)]
    if not path.is_dir() and is_table(existing_file(path)):
        return _of_table(path, reading)
    if path.suffix.lower() == ".npz" and not path.is_dir():
        refuse_idle_for_file(path, reading)
        dataset = read_npz(existing_file(path), labels=reading.label)
    else:
        dataset = read_own(path, labels=reading.label)
    return replace(of_dataset(dataset), name=path.name), []


def _sizes(folder: Path) -> list[Finding]:
    """Return that the images of a folder have different sizes."""
    paths = all_images(folder)
    sizes = set()
    for path in paths[:: max(1, len(paths) // _SIZES)]:
        with suppress(DataError):  # it is listed with those that cannot be read
            sizes.add(image_size(path))
    if len(sizes) < 2:
        return []
    (width, height), (wide, high) = min(sizes, key=prod), max(sizes, key=prod)
    text = f"The images have {len(sizes)} different sizes, from {width} × {height} to {wide} × {high} pixels."
    return [Finding("image sizes", text, f"Bring them to one size: {one_size()}.", severity="note")]


def _of_table(path: Path, reading: ReadingOptions) -> tuple[Examined, list[Finding]]:
    refuse_idle_for_file(path, reading)
    problems = Problems(path, reading.drop)
    sample = FileSample(reading)
    for block in column_blocks(path, reading.encoding, None, _ROWS_AT_ONCE, problems):
        sample.add(block)
        if sample.total:
            tell(Stage(f"reading {path.name}", sample.total, None, "rows"))
    file = sample.file()
    if not sample.total and not problems.found:
        problems.stop("it has a header but no rows." if file.rows.kind == "line" else "it has no rows.")
    # If it is not clear what the label is, a guess would make all other findings wrong.
    left = [name for name in file.names if name not in reading.drop]
    with Problems(path, reading.drop) as unclear:
        find_label(left, reading.label, unclear, lambda: file.values)
    file, places = _labelled(file, sample.places, find_label(left, reading.label, problems), problems)
    table = understand(file, reading, problems)
    if table.encoded is None:
        problems.raise_found()
    assert table.encoded is not None  # noqa: S101  (else there was a problem)
    codes, classes = table.encoded.codes.numpy(), tuple(map(str, table.encoded.classes))
    examined = Examined(
        path.name,
        {name: _column(values, table.decimal) for name, values in table.columns.items()},
        codes,
        classes,
        places=places,
        total=sample.total if sample.is_partial else len(codes),
        counts=sample.counts(table.decimal) if sample.is_partial else counted(codes, classes),
        label=table.label,
        rows=file.rows,
        dropped=reading.drop,
        decimal=table.decimal,
    )
    return examined, _findings(problems, reading)


def _labelled(file: FileColumns, places: Codes, label: str | None, problems: Problems) -> tuple[FileColumns, Codes]:
    """Return the rows that have a label. The others are noted."""
    if label is None or label not in file.values:
        return file, places
    missing = np.array([is_missing_label(value) for value in file.values[label].tolist()])
    if not missing.any() or missing.all():
        return file, places
    for problem in label_problems(np.where(missing, "", "x"), file.rows):
        problems.add(f"column {label!r}: {problem}")
    kept = np.flatnonzero(~missing)
    values = {name: column[kept] for name, column in file.values.items()}
    return replace(file, values=values, rows=file.rows.of(kept.tolist())), places[kept]


def _column(values: npt.NDArray[Any], decimal: Decimal) -> npt.NDArray[Any]:
    found = numbers(values, decimal)
    return as_column(values) if found is None else found


def _findings(problems: Problems, reading: ReadingOptions) -> list[Finding]:
    """Return problems with a file as findings, each with the options that solve it."""
    found = []
    for text, remedy in zip(problems.found, problems.remedies, strict=True):
        said = in_words({option: [value] for option, value in remedy.items()}, reading.drop)
        columns = (remedy["drop"],) if "drop" in remedy else ()
        found.append(Finding(NOT_USABLE, text[0].upper() + text[1:], f"Try: {said}" if remedy else "", columns))
    return found
