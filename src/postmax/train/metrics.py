"""What is measured: accuracy, calibration, and how much of the wrong labels a network learns by heart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from postmax.train.records import Reliability

BINS = 15


@dataclass(frozen=True)
class Scores:
    """A posterior judged by labels, one figure for each lane.

    Attributes:
        accuracy: Share of rows whose most probable class is the label.
        calibration_error: Mean distance of confidence and accuracy over equal bins of confidence, weighted by rows.
        reliability: The bins, one dictionary for each lane.
    """

    accuracy: list[float]
    calibration_error: list[float]
    reliability: list[Reliability]


def score(posterior: Tensor, labels: Tensor, bins: int = BINS) -> Scores:
    """Judge posteriors (S, N, K) by labels (S, N)."""
    confidence, predicted = posterior.double().max(-1)
    right = (predicted == labels).double()
    # Bins are (0, 1/b], (1/b, 2/b], …: a sure answer belongs to the last.
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
    )


@dataclass(frozen=True)
class Learnt:
    """Agreement of predictions with training labels, one figure for each lane; NaN where there is no such row."""

    given: list[float]
    right_labels: list[float]
    wrong_labels: list[float]
    recovered: list[float]


def learnt(predicted: Tensor, labels: Tensor, clean: Tensor | None) -> Learnt:
    """Compare predictions (S, N) with the given labels and, where known, the clean ones; rows never seen are −1."""
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
    return (part.double().sum(1) / whole.double().sum(1)).tolist()
