"""Read a file or folder of one's own for a fit, look at it, and train on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from postmax.checking import Finding, Findings, check_file
from postmax.data import Dataset, embed_images, image_embedding, read_image_folder
from postmax.data.embedding.image_embedding import USUAL, ImageEmbedding
from postmax.data.embedding.text_column import EMBED
from postmax.data.own import is_table, read_own
from postmax.data.reading import ReadingOptions, refuse_idle_for_file
from postmax.data.row_form import RowForm
from postmax.errors import DataError
from postmax.fitting.fit import Fit, fit
from postmax.progress import Stage, tell

_LEFT_OUT = "left out, because they hold names, dates or the like: "


def fit_file(
    path: Path,
    reading: ReadingOptions,
    *,
    keeps_missing: bool,
    seed: int,
    say: Callable[[list[str]], None],
    network: str = USUAL,
) -> Fit:
    """Return a classifier for the rows of a file or folder.

    Args:
        path: The file or folder.
        reading: How it is read.
        keeps_missing: Whether missing numbers say something of their own, instead of what `reading` says about them.
        seed: The seed of everything random.
        say: Gets what a person should know about the data, before the training begins.
        network: The frozen network that turns images into features; see docs/embedding.md.

    Raises:
        DataError: If it cannot be read, or has one class only.
        InputError: If an option has no meaning for it.
        MissingDependency: If it has images, and the network that turns them into features is not installed.
    """
    if path.is_dir() and not is_table(path):
        refuse_idle_for_file(path, reading)
        dataset = read_image_folder(path, in_memory=False)
    else:
        dataset = _read_file(path, reading, keeps_missing=keeps_missing)
    if dataset.num_classes < 2:
        raise DataError(f"{path}: it has one class only, {dataset.classes[0]!r}: a classifier needs at least two.")
    findings = check_file(path, _kept(reading, path, keeps_missing))
    notes = _notes(findings, dataset, reading)
    say(notes)
    form, embedding = _form(dataset, reading), None
    if len(form.shape) == 3:
        dataset, form, embedding = _embedded(dataset, form, network)
    return fit(dataset, form, embedding=embedding, seed=seed, notes=notes, findings=findings)


def _read_file(path: Path, reading: ReadingOptions, *, keeps_missing: bool) -> Dataset:
    kept = vars(_kept(reading, path, keeps_missing))
    options: dict[str, Any] = {"labels" if name == "label" else name: value for name, value in kept.items()}
    if is_table(path):
        options |= {"text": EMBED, "leave_out": True}
    return read_own(path, **options, min_classes=2)


def _kept(reading: ReadingOptions, path: Path, keeps_missing: bool) -> ReadingOptions:
    return replace(reading, missing="keep") if keeps_missing and is_table(path) else reading


def _notes(findings: Findings, dataset: Dataset, reading: ReadingOptions) -> list[str]:
    """Return what a person should know. Of columns that are left out, nothing more needs to be said."""
    left_out = [] if dataset.table is None else [name for name in dataset.table.dropped if name not in reading.drop]
    notes = [f"{_LEFT_OUT}{', '.join(left_out)}"] if left_out else []
    return notes + [_in_words(one) for one in findings if not one.columns or not {*one.columns} <= {*left_out}]


def _in_words(finding: Finding) -> str:
    return f"problem: {finding}" if finding.severity == "problem" else str(finding)


def _form(dataset: Dataset, reading: ReadingOptions) -> RowForm:
    shape = tuple(dataset.inputs[torch.tensor([0])].shape[1:])
    return RowForm(shape, dataset.table, "median", reading.decimal, reading.encoding)


def _embedded(dataset: Dataset, form: RowForm, network: str) -> tuple[Dataset, RowForm, ImageEmbedding]:
    """Return images as the features of a frozen network. Files are brought to the size that it takes."""
    embedding = image_embedding(dataset.inputs, network)
    bad: list[int] = []
    features = embed_images(dataset.inputs, embedding, unreadable=lambda row, _: bad.append(row))
    if bad:
        good = torch.ones(len(dataset), dtype=torch.bool)
        good[bad] = False
        tell(Stage(f"left out, because they cannot be read: {dataset.rows.some(bad)}"))
        dataset, features = dataset.subset(good), features[good]
    if dataset.rows.kind == "file":
        form = replace(form, shape=(3, embedding.side, embedding.side), size=embedding.side)
    return replace(dataset, inputs=features), form, embedding
