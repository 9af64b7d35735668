"""The metrics of a run: accuracy, calibration, and how many of the wrong labels a network memorises."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from postmax.train.records import EpochRecord, Reliability

BINS = 15


@dataclass(frozen=True)
class Scores:
    """How well a posterior agrees with labels; each list has one value for each seed.

    Attributes:
        accuracy: The share of rows whose most probable class is the label.
        calibration_error: The mean distance of confidence and accuracy over equal bins of confidence, weighted by rows.
        reliability: The bins.
        labels: (S, N), the labels.
        predicted: (S, N), the most probable classes.
    """

    accuracy: list[float]
    calibration_error: list[float]
    reliability: list[Reliability]
    labels: Tensor
    predicted: Tensor

    def confusion(self, lane: int) -> list[tuple[int, int, int]]:
        """Return how many rows of one seed have which label and which predicted class: (label, predicted, rows).

        Only pairs that occur are listed, so that a thousand classes do not take a million entries. They are sorted.
        """
        pairs = zip(self.labels[lane].tolist(), self.predicted[lane].tolist(), strict=True)
        return [(label, predicted, rows) for (label, predicted), rows in sorted(Counter(pairs).items())]


def score(posterior: Tensor, labels: Tensor, bins: int = BINS) -> Scores:
    """Compare posteriors (S, N, K) with labels (S, N)."""
    posterior, labels = _with_double(posterior), _with_double(labels)
    confidence, predicted = posterior.double().max(-1)
    right = (predicted == labels).double()
    # Bins are (0, 1/b], (1/b, 2/b], …, so that a confidence of 1 belongs to the last bin.
    place = (confidence * bins).ceil().long().clamp(1, bins) - 1
    zeros = torch.zeros(len(labels), bins, dtype=torch.float64, device=labels.device)
    count = zeros.scatter_add(1, place, torch.ones_like(right))
    trust, hits = zeros.scatter_add(1, place, confidence), zeros.scatter_add(1, place, right)
    errors = (trust - hits).abs().sum(1) / labels.shape[1]
    filled = count.clamp(min=1)
    return Scores(
        accuracy=right.mean(1).tolist(),
        calibration_error=errors.tolist(),
        reliability=[
            {"count": c.long().tolist(), "confidence": t.tolist(), "accuracy": h.tolist()}
            for c, t, h in zip(count, trust / filled, hits / filled, strict=True)
        ],
        labels=labels,
        predicted=predicted,
    )


@dataclass(frozen=True)
class Learnt:
    """How predictions agree with training labels; each list has one value for each seed, NaN if there is no such row.

    Attributes:
        given: The share of rows for which the given label is predicted.
        right_labels: The same, of rows whose given label is right.
        wrong_labels: The same, of rows whose given label is wrong: memorisation.
        recovered: The share of rows with a wrong label for which the true class is predicted.
    """

    given: list[float]
    right_labels: list[float]
    wrong_labels: list[float]
    recovered: list[float]


@dataclass(frozen=True)
class Truth:
    """The training labels of every seed, (S, N).

    Attributes:
        labels: As they are given.
        clean: As they should be; None where that is not known.
    """

    labels: Tensor
    clean: Tensor | None


def learnt(predicted: Tensor, labels: Tensor, clean: Tensor | None) -> Learnt:
    """Compare predictions (S, N), −1 for rows that were not seen, with the given and, where known, the clean labels."""
    seen = predicted >= 0
    agrees = (predicted == labels) & seen
    if clean is None:
        return Learnt(_share(agrees, seen), [], [], [])
    wrong = (labels != clean) & seen
    return Learnt(
        given=_share(agrees, seen),
        right_labels=_share(agrees & ~wrong, seen & ~wrong),
        wrong_labels=_share(agrees & wrong, wrong),
        recovered=_share((predicted == clean) & wrong, wrong),
    )


def _share(part: Tensor, whole: Tensor) -> list[float]:
    part, whole = _with_double(part), _with_double(whole)
    return (part.double().sum(1) / whole.double().sum(1)).tolist()


def _with_double(tensor: Tensor) -> Tensor:
    """Return the tensor on a device that has float64. Apple's GPUs do not have it."""
    return tensor.cpu() if tensor.device.type == "mps" else tensor


def epoch_records(
    number: int,
    seeds: Sequence[int],
    losses: Sequence[float],
    rate: float,
    truth: Truth,
    predicted: Tensor | None,
    seconds: float,
) -> list[EpochRecord]:
    """Return the record of an epoch for each seed, before held-out rows are judged.

    Args:
        number: The number of the epoch, counted from 0.
        seeds: The seeds.
        losses: The mean loss of each seed.
        rate: The learning rate of the last step.
        truth: The training labels.
        predicted: The classes (S, N) that were predicted while training, −1 for rows that were not seen; None if no row
            was seen.
        seconds: How long the epoch took.
    """
    known = None if predicted is None else learnt(predicted, truth.labels, truth.clean)
    records: list[EpochRecord] = []
    for lane, seed in enumerate(seeds):
        record: dict[str, Any] = {"epoch": number + 1, "seed": seed, "loss": losses[lane], "lr": rate}
        if known is not None:
            record["train_accuracy"] = _of(known.given, lane)
            record["right_labels_learnt"] = _of(known.right_labels, lane)
            record["wrong_labels_learnt"] = _of(known.wrong_labels, lane)
            record["wrong_labels_recovered"] = _of(known.recovered, lane)
        record["seconds"] = seconds
        records.append({key: value for key, value in record.items() if value is not None})  # type: ignore[arg-type]
    return records


def _of(values: Sequence[float], lane: int) -> float | None:
    """Return the value of a seed; None where nothing was measured, or there was no row to measure."""
    return values[lane] if values and math.isfinite(values[lane]) else None
