"""What `postmax noise estimate` reads and prints."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt
import torch
import typer
from torch import Tensor

from postmax import data
from postmax.cli.text import print_matrix
from postmax.data.dataset import Dataset
from postmax.data.own import read_own
from postmax.data.reading import ReadingOptions, refuse_idle, refuse_idle_for_file
from postmax.errors import DataError, InputError
from postmax.estimation import CrossFit, TransitionEstimate
from postmax.files import load_arrays
from postmax.labels import EncodedLabels, encode_labels
from postmax.row_names import PLACES
from postmax.train.estimates import are_images, rows_to_estimate_from
from postmax.train.image_crossfit import cross_fit_images

_KNOWN = "a data set that postmax knows"


class FileEvidence(NamedTuple):
    """The labels of a file, with features or probabilities, and for images with a way to train networks on them."""

    encoded: EncodedLabels
    features: Tensor | None = None
    probabilities: npt.NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    cross_fit: CrossFit | None = None


def place_for(source: str | Path) -> Path:
    """Return the file that an estimate is written to: beside a file or folder; for a data set in the present folder."""
    if isinstance(source, str):
        return Path(f"{source}.transition.json")
    return source.parent / f"{source.name if source.is_dir() else source.stem}.transition.json"


def read_evidence(source: str | Path, reading: ReadingOptions, size: int | None) -> FileEvidence:
    """Return the labels of a data set, a folder of images or a file, with what their noise can be estimated from.

    Args:
        source: The name of a data set, or a path that exists.
        reading: How a file is read.
        size: The side of the images of a folder after scaling.

    Raises:
        InputError: If an option has no meaning for data of this kind.
        DataError: If the data cannot be read.
    """
    if isinstance(source, str):
        refuse_idle(source, _KNOWN, reading)
        _refuse_size(source, _KNOWN, size)
        return _from_dataset(data.load(source))
    if not source.is_dir():
        _refuse_size(source, "a file", size)
    arrays = load_arrays(source) if source.suffix.lower() == ".npz" and not source.is_dir() else {}
    if "probabilities" in arrays:
        return _from_arrays(source, arrays, reading)
    options = {"labels" if name == "label" else name: value for name, value in vars(reading).items()}
    return _from_dataset(read_own(source, **options, size=size, min_classes=2))


def _refuse_size(source: str | Path, what: str, size: int | None) -> None:
    if size is not None:
        raise InputError(f"{source}: --size is for the images of a folder, but this is {what}.")


def _from_arrays(file: Path, arrays: dict[str, npt.NDArray[Any]], reading: ReadingOptions) -> FileEvidence:
    refuse_idle_for_file(file, reading)
    key = reading.label or next((name for name in ("labels", "y", "label", "targets") if name in arrays), "labels")
    if key not in arrays:
        raise DataError(f"{file} has no array of labels called {key!r}; it has {', '.join(arrays)}.")
    encoded = encode_labels(arrays[key], where=f"{file}: {key}", rows=PLACES)
    features = next((arrays[name] for name in ("x", "features") if name in arrays), None)
    rows = None if features is None else torch.from_numpy(features)
    return FileEvidence(encoded, features=rows, probabilities=arrays["probabilities"])


def _from_dataset(dataset: Dataset) -> FileEvidence:
    rows = rows_to_estimate_from(dataset)
    evidence = FileEvidence(EncodedLabels(dataset.labels, dataset.classes), notes=dataset.notes)
    # Pixels are poor features: neighbours by pixels are seldom of the same class.
    if are_images(rows):
        return evidence._replace(cross_fit=partial(cross_fit_images, rows))
    return evidence._replace(features=rows.float())


def tell(found: TransitionEstimate, out: Path) -> None:
    """Print an estimate in words, with its matrix."""
    low, high = found.noise_rate_interval
    facts = {
        "method": f"{found.method}, {found.rows} rows, {len(found.classes)} classes",
        "wrong labels": f"{found.noise_rate:.1%}, about {found.noise_rate * found.rows:.0f} rows",
        f"{found.level:.0%} interval": f"{low:.1%} to {high:.1%}",
        "condition": f"{found.condition_number:.3g} (how much a correction amplifies errors)",
    }
    for fact, value in facts.items():
        typer.echo(f"{fact:14s} {value}")
    print_matrix(found.matrix, found.classes, counts=(found.prior * found.rows).round())
    for name, reason in found.unidentified.items():
        typer.echo(f"not identified {name}: {reason}")
    typer.echo(f"estimate       {out}")


def tell_json(found: TransitionEstimate) -> None:
    """Print an estimate as JSON."""
    typer.echo(json.dumps(found.to_dict()))
