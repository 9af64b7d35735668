"""Read a file or folder of one's own for a fit, and look at it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from postmax.checking import Finding, check_file
from postmax.data import Dataset, read_image_folder
from postmax.data.embedding.text_column import EMBED
from postmax.data.own import is_table, read_own
from postmax.data.reading import ReadingOptions, refuse_idle_for_file
from postmax.data.row_form import RowForm
from postmax.errors import DataError


@dataclass(frozen=True)
class FitRows:
    """The rows of a file or folder.

    Attributes:
        dataset: The rows: features, of which some may be NaN, or images.
        form: What the rows are, and how they are read again from other files.
        findings: What a person should know about them, without what is only about columns that are left out.
        left_out: Columns that cannot be features, because they hold names, dates or the like.
    """

    dataset: Dataset
    form: RowForm
    findings: tuple[Finding, ...] = ()
    left_out: tuple[str, ...] = ()


def read_rows(path: Path, reading: ReadingOptions, *, keeps_missing: bool) -> FitRows:
    """Return the rows of a file or folder, and what a look at them has found.

    Args:
        path: The file or folder.
        reading: How it is read.
        keeps_missing: Whether missing numbers say something of their own, instead of what `reading` says about them.

    Raises:
        DataError: If it cannot be read, or has one class only.
        InputError: If an option has no meaning for it.
    """
    if keeps_missing and is_table(path):
        reading = replace(reading, missing="keep")
    dataset = _dataset(path, reading)
    if dataset.num_classes < 2:
        raise DataError(f"{path}: it has one class only, {dataset.classes[0]!r}: a classifier needs at least two.")
    dropped = () if dataset.table is None else dataset.table.dropped
    left_out = tuple(name for name in dropped if name not in reading.drop)
    found = (one for one in check_file(path, reading) if not one.columns or not {*one.columns} <= {*left_out})
    shape = tuple(dataset.inputs[torch.tensor([0])].shape[1:])
    form = RowForm(shape, dataset.table, "median", reading.decimal, reading.encoding)
    return FitRows(dataset, form, tuple(found), left_out)


def _dataset(path: Path, reading: ReadingOptions) -> Dataset:
    if path.is_dir() and not is_table(path):
        refuse_idle_for_file(path, reading)
        return read_image_folder(path, in_memory=False)
    options: dict[str, Any] = {"labels" if name == "label" else name: value for name, value in vars(reading).items()}
    if is_table(path):
        options |= {"text": EMBED, "leave_out": True}
    return read_own(path, **options, min_classes=2)
