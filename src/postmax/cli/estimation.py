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
from postmax.errors import DataError
from postmax.estimation import CrossFit, TransitionEstimate
from postmax.files import existing_file, load_arrays
from postmax.labels import EncodedLabels, encode_labels
from postmax.row_names import PLACES
from postmax.train.estimates import are_images, rows_to_estimate_from
from postmax.train.image_crossfit import cross_fit_images


class FileEvidence(NamedTuple):
    """The labels of a file, with features or probabilities, and for images with a way to train networks on them."""

    encoded: EncodedLabels
    features: Tensor | None = None
    probabilities: npt.NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    cross_fit: CrossFit | None = None


def names_data_set(file: Path) -> bool:
    """Return whether this is the name of a data set that postmax knows, and not a file."""
    return str(file) in data.names() and not file.exists()


def read_evidence(file: Path, reading: ReadingOptions, size: int | None = None) -> FileEvidence:
    """Return the labels of a file, a folder of images or a known data set, with their features or probabilities."""
    label = reading.label
    if names_data_set(file):
        name = str(file)
        refuse_idle(name, "a data set that postmax knows", reading)
        return _from_dataset(data.load(name, split="train" if "train" in data.splits(name) else "all"))
    file = file if file.is_dir() else existing_file(file)
    arrays = load_arrays(file) if file.suffix.lower() == ".npz" else {}
    if "probabilities" not in arrays:
        options = {"labels" if name == "label" else name: value for name, value in vars(reading).items()}
        return _from_dataset(read_own(file, **options, size=size, min_classes=2))
    refuse_idle_for_file(file, reading)
    key = label or next((name for name in ("labels", "y", "label", "targets") if name in arrays), "labels")
    if key not in arrays:
        raise DataError(f"{file} has no array of labels called {key!r}; it has {', '.join(arrays)}.")
    encoded = encode_labels(arrays[key], where=f"{file}: {key}", rows=PLACES)
    features = next((arrays[name] for name in ("x", "features") if name in arrays), None)
    rows = None if features is None else torch.from_numpy(features)
    return FileEvidence(encoded, features=rows, probabilities=arrays["probabilities"])


def _from_dataset(dataset: Dataset) -> FileEvidence:
    rows = rows_to_estimate_from(dataset)
    return FileEvidence(
        EncodedLabels(dataset.labels, dataset.classes),
        features=rows.float().flatten(1),
        notes=dataset.notes,
        cross_fit=partial(cross_fit_images, rows) if are_images(rows) else None,
    )


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
