"""How accurate a classifier is on right labels, though only labels with noise are known."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
_STANDARD_ERRORS = 1.96
# An inverse that multiplies errors by more than this says nothing.
_MOST_CONDITION = 1e6


class Accuracy(NamedTuple):
    """The accuracy on right labels.

    Attributes:
        expected: The estimate; None if the noise is such that labels say nothing about it.
        low: The lower end of its 95 % interval.
        high: The upper end.
        agreement: The share of labels as given that are predicted.
    """

    expected: float | None
    low: float
    high: float
    agreement: float


def accuracy_on_right_labels(
    predicted: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int64],
    matrix: Numbers,
    rates: tuple[float, float, float],
) -> Accuracy:
    """Return how often predictions are the true class, from labels whose noise is known.

    A prediction c on a row with label j counts as the entry [j, c] of the inverse of the transition matrix T. Its mean
    over labels of a row of the true class i is Σ_j T[i, j]·T⁻¹[j, c], which is 1 if c = i and 0 otherwise. So the mean
    over rows is the accuracy on true classes, whatever the predictions are. It takes nothing from the probabilities of
    the model, only its predictions, which must be out of sample.

    The interval has two parts: rows are a sample, and the noise rate is known within an interval. At the ends of this
    interval the matrix is (1 − s)·I + s·T, which has the same pattern and another rate.

    Args:
        predicted: The predicted classes, (N,).
        labels: The labels as given, (N,).
        matrix: T, (K, K).
        rates: The noise rate, and the lower and upper end of its interval.

    Example:
        >>> predicted, labels = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 0])
        >>> found = accuracy_on_right_labels(predicted, labels, np.array([[0.8, 0.2], [0.2, 0.8]]), (0.2, 0.2, 0.2))
        >>> round(found.agreement, 3), round(found.expected, 3)
        (0.667, 0.778)
    """
    agreement = float((predicted == labels).mean())
    rate, *ends = rates
    middle = _mean_and_error(predicted, labels, matrix)
    if middle is None:
        return Accuracy(None, 0.0, 1.0, agreement)
    bounds = [middle]
    for end in ends:
        found = _mean_and_error(predicted, labels, _with_rate(matrix, rate, end))
        bounds.append((1.0, 0.0) if found is None else found)
    low = min(mean - _STANDARD_ERRORS * error for mean, error in bounds)
    high = max(mean + _STANDARD_ERRORS * error for mean, error in bounds)
    expected, low, high = (min(1.0, max(0.0, value)) for value in (middle[0], low, high))
    return Accuracy(expected, low, high, agreement)


def _with_rate(matrix: Numbers, rate: float, wanted: float) -> Numbers:
    """Return a matrix with the same pattern of noise and another rate; symmetric noise if it has none."""
    k = len(matrix)
    if rate < 1e-9:
        found: Numbers = np.full((k, k), wanted / (k - 1))
        np.fill_diagonal(found, 1 - wanted)
        return found
    return np.eye(k) + (matrix - np.eye(k)) * (wanted / rate)


def _mean_and_error(
    predicted: npt.NDArray[np.int64], labels: npt.NDArray[np.int64], matrix: Numbers
) -> tuple[float, float] | None:
    """Return the mean over rows and its standard error; None if the matrix cannot be inverted."""
    if not np.linalg.cond(matrix) < _MOST_CONDITION or (np.diag(matrix) <= 0).any():
        return None
    counted = np.linalg.inv(matrix)[labels, predicted]
    error = counted.std(ddof=1) / math.sqrt(len(counted)) if len(counted) > 1 else 1.0
    return float(counted.mean()), float(error)
