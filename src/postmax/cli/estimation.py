"""What `postmax noise estimate` reads and prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt
import torch
import typer
from torch import Tensor

from postmax.cli.text import print_matrix
from postmax.data.arrays import read_npz
from postmax.data.dataset import Dataset
from postmax.data.reading import ReadingOptions, refuse_idle_for_file
from postmax.data.tables import read_table
from postmax.errors import DataError
from postmax.estimation import TransitionEstimate
from postmax.files import load_arrays
from postmax.labels import EncodedLabels, encode_labels
from postmax.row_names import PLACES


class FileEvidence(NamedTuple):
    """The labels of a file, with features or probabilities."""

    encoded: EncodedLabels
    features: Tensor | None = None
    probabilities: npt.NDArray[Any] | None = None
    notes: tuple[str, ...] = ()


def read_evidence(file: Path, reading: ReadingOptions) -> FileEvidence:
    """Return the labels of a file with their features or probabilities."""
    if file.suffix.lower() != ".npz":
        return _from_dataset(read_table(file, **vars(reading), min_classes=2))
    refuse_idle_for_file(file, reading)
    label = reading.label
    arrays = load_arrays(file)
    if "probabilities" not in arrays:
        return _from_dataset(read_npz(file, labels=label))
    key = label or next((name for name in ("labels", "y", "label", "targets") if name in arrays), "labels")
    if key not in arrays:
        raise DataError(f"{file} has no array of labels called {key!r}; it has {', '.join(arrays)}.")
    encoded = encode_labels(arrays[key], where=f"{file}: {key}", rows=PLACES)
    features = next((arrays[name] for name in ("x", "features") if name in arrays), None)
    rows = None if features is None else torch.from_numpy(features)
    return FileEvidence(encoded, features=rows, probabilities=arrays["probabilities"])


def _from_dataset(dataset: Dataset) -> FileEvidence:
    rows = dataset.inputs[torch.arange(len(dataset))].float().flatten(1)
    return FileEvidence(EncodedLabels(dataset.labels, dataset.classes), features=rows, notes=dataset.notes)


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
