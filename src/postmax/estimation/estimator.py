"""What an estimator of the transition matrix is."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.estimation.evidence import Evidence

_FEWEST_ROWS = 3

RowTensors = tuple[Tensor, ...]
"""Tensors that all have one entry for each row of the data, so that rows can be drawn again."""


class Solution(NamedTuple):
    """A transition matrix with the frequencies of the true classes.

    Attributes:
        matrix: (K, K) the transition matrix.
        prior: (K,) the frequencies of the true classes.
        bounds: The noise rate if no doubtful row is mislabelled, and if every doubtful row is. None if the estimator
            cannot tell. See `postmax.estimation.likelihood`.
        state: What else the estimator needs to start again from this solution.
    """

    matrix: Tensor
    prior: Tensor
    bounds: tuple[float, float] | None = None
    state: tuple[Tensor, ...] = ()

    @property
    def noise_rate(self) -> float:
        """The share of wrong labels."""
        return float((self.prior * (1 - self.matrix.diagonal())).sum())


class TransitionEstimator(Protocol):
    """An estimator of the transition matrix, in two steps.

    The first step, `rows`, does everything that takes long, such as training networks or finding neighbours. It runs
    once. The second step, `solve`, turns its result into a matrix. It runs again on resampled rows, which gives the
    intervals.
    """

    def rows(self, evidence: Evidence) -> RowTensors:
        """Return tensors with one entry for each row of the data."""
        ...

    def solve(self, rows: RowTensors, num_classes: int, start: Solution | None = None) -> Solution:
        """Return the matrix that explains these rows; `start` is the solution for nearly the same rows."""
        ...


def needs_features(estimator: TransitionEstimator) -> bool:
    """Return whether an estimator refuses rows of which only the probabilities are known.

    Example:
        >>> from postmax import estimation
        >>> needs_features(estimation.get("hoc")), needs_features(estimation.get("anchor"))
        (True, False)
    """
    labels = torch.arange(_FEWEST_ROWS) % 2
    even = torch.full((_FEWEST_ROWS, 2), 0.5, dtype=torch.float64)
    try:
        estimator.rows(Evidence(labels, (0, 1), even, None, seed=0))
    except InputError:
        return True
    return False
