"""Read a file or folder of one's own for a fit, and train on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from postmax.data import Dataset
from postmax.data.own import is_table, read_own
from postmax.data.reading import ReadingOptions
from postmax.data.row_form import RowForm
from postmax.errors import InputError
from postmax.fitting.fit import Fit, fit

Say = Callable[[Iterable[str]], None]


def fit_file(path: Path, reading: ReadingOptions, *, keeps_missing: bool, seed: int, say: Say) -> Fit:
    """Return a classifier for the rows of a file or folder.

    Args:
        path: The file or folder.
        reading: How it is read.
        keeps_missing: Whether missing numbers say something of their own, instead of what `reading` says about them.
        seed: The seed of everything random.
        say: Gets what a person should know about the data, before the training begins.
    """
    dataset = _read(path, reading, keeps_missing=keeps_missing)
    say(dataset.notes)
    shape = tuple(dataset.inputs[torch.tensor([0])].shape[1:])
    if len(shape) != 1:
        raise InputError(f"{path}: a fit is for rows of features, and these are images.")
    form = RowForm(shape, dataset.table, "median", reading.decimal, reading.encoding)
    return fit(dataset, form, seed=seed)


def _read(path: Path, reading: ReadingOptions, *, keeps_missing: bool) -> Dataset:
    options = {"labels" if name == "label" else name: value for name, value in vars(reading).items()}
    if keeps_missing and is_table(path):
        options["missing"] = "keep"
    return read_own(path, **options, min_classes=2, leave_out=True)
