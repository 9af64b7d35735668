"""Train a classifier on a data set of one's own, and say what it found out about the labels."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np
import torch

from postmax.checking import CANNOT_TELL
from postmax.data import Dataset
from postmax.data.embedding.image_embedding import USUAL
from postmax.estimator import FPMLClassifier
from postmax.fitting.doubt import Doubt, doubt, largest_confusions
from postmax.fitting.expected import accuracy_on_right_labels
from postmax.fitting.images import embedded
from postmax.fitting.label_table import LabelTable, label_table
from postmax.fitting.signal import surprise
from postmax.fitting.source import FitRows
from postmax.runs.environment import environment
from postmax.tabular.saved import SavedClassifier
from postmax.version import __version__

_CONFUSIONS = 10
# By how many standard errors labels must be foreseen better than by the shares of their classes: if nothing speaks
# against it, and if simple models found nothing.
_ENOUGH, _CLEAR = 1.64, 3.0


class ConfusionRecord(TypedDict):
    """How many rows of a true class are expected to have the label of another one."""

    true: str
    label: str
    rows: float
    share: float


class FitRecord(TypedDict):
    """The result of a fit, as plain values.

    `accuracy` is that on right labels, with its 95 % interval; None if the labels say nothing about it. `agreement` is
    the share of labels as given that are predicted, out of sample. `majority` is the share of the most frequent label.
    `cannot_tell` says that the features say nothing about the labels.
    """

    version: str
    name: str
    rows: int
    classes: list[str]
    counts: list[int]
    table: dict[str, Any] | None
    features: int
    left_out: list[str]
    findings: list[dict[str, Any]]
    cannot_tell: bool
    embedding: str | None
    estimate: dict[str, Any]
    accuracy: float | None
    accuracy_interval: list[float]
    agreement: float
    majority: float
    wrong: float
    confusions: list[ConfusionRecord]
    networks: dict[str, float]
    seed: int
    seconds: float
    environment: dict[str, str]


@dataclass(frozen=True)
class Fit:
    """What was learnt.

    Attributes:
        model: The fitted classifier.
        saved: What is kept of it.
        record: The result.
        doubt: What is believed about each label.
        dataset: The rows.
    """

    model: FPMLClassifier
    saved: SavedClassifier
    record: FitRecord
    doubt: Doubt
    dataset: Dataset

    @property
    def labels(self) -> LabelTable:
        """What is believed about each label, in the order of the rows."""
        return label_table(self.doubt, self.model.given_, self.record["classes"], self.dataset.rows)


def fit(rows: FitRows, *, network: str = USUAL, seed: int = 0) -> Fit:
    """Return a classifier for rows with partly wrong labels, and what it says about them.

    Args:
        rows: The rows.
        network: The frozen network that turns images into features; see docs/embedding.md.
        seed: The seed of everything random.

    Raises:
        MissingDependency: If the rows are images, and the network is not installed.
    """
    start = time.monotonic()
    embedding = None
    if rows.form.are_images:
        rows, embedding = embedded(rows, network)
    dataset = rows.dataset
    features = torch.as_tensor(dataset.inputs[torch.arange(len(dataset))]).numpy()
    labels = dataset.labels.numpy()
    model = FPMLClassifier(random_state=seed)
    model.fit(features, labels)
    assert model.estimate_ is not None  # noqa: S101  (by default the noise is estimated)
    # The classes of the model are those that rows have; a data set may name more.
    classes = tuple(dataset.classes[code] for code in model.classes_)
    codes = np.searchsorted(model.classes_, labels)
    matrix = model.transition_.matrix.numpy()
    believed = doubt(model.posterior_, codes, model.transition_)
    accuracy = accuracy_on_right_labels(
        model.posterior_.argmax(1), codes, matrix, (model.noise_rate_, *model.noise_rate_interval_)
    )
    counts = np.bincount(codes, minlength=len(classes))
    # Networks may see what the simple models of the look at the data did not.
    suspected = any(one.kind == CANNOT_TELL for one in rows.findings)
    cannot_tell = surprise(model.posterior_ @ matrix, codes) < (_CLEAR if suspected else _ENOUGH)
    if cannot_tell:
        accuracy = accuracy._replace(expected=None, low=0.0, high=1.0)
    record: FitRecord = {
        "version": __version__,
        "name": dataset.name,
        "rows": len(dataset),
        "classes": list(classes),
        "counts": counts.tolist(),
        "table": None if dataset.table is None else dataset.table.to_dict(),
        "features": features.shape[1],
        "left_out": list(rows.left_out),
        "findings": [one.to_dict() for one in rows.findings if cannot_tell or one.kind != CANNOT_TELL],
        "cannot_tell": cannot_tell,
        "embedding": None if embedding is None else embedding.model,
        "estimate": with_names(model.estimate_.to_dict(), classes),
        "accuracy": accuracy.expected,
        "accuracy_interval": [accuracy.low, accuracy.high],
        "agreement": accuracy.agreement,
        "majority": float(counts.max() / counts.sum()),
        "wrong": believed.wrong,
        "confusions": [
            {"true": one.true, "label": one.label, "rows": one.rows, "share": one.share}
            for one in largest_confusions(believed.confusions, classes, _CONFUSIONS)
        ],
        "networks": _networks(model),
        "seed": seed,
        "seconds": time.monotonic() - start,
        "environment": environment(),
    }
    saved = replace(model.saved(rows.form), classes=classes, embedding=embedding)  # with names in place of numbers
    return Fit(model, saved, record, believed, dataset)


def _networks(model: FPMLClassifier) -> dict[str, float]:
    """Return how much each kind of network counts, the one that counts most first."""
    found: dict[str, float] = {}
    for kind, share in model.network_shares_:
        found[kind] = found.get(kind, 0.0) + share
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def with_names(estimate: dict[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    """Return an estimate, as plain values, with the names of the classes in place of other ones."""
    names = dict(zip(map(str, estimate["classes"]), classes, strict=True))
    unidentified = [[names.get(str(name), name), reason] for name, reason in estimate["unidentified"]]
    return {**estimate, "classes": list(classes), "unidentified": unidentified}
