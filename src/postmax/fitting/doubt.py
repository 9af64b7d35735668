"""Which labels are doubtful, what they should be, and which classes are confused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from postmax.tabular.noise import true_class
from postmax.transition import Transition

Numbers = npt.NDArray[np.float64]


class Doubt(NamedTuple):
    """What is believed about each label.

    Attributes:
        right: The probability that the label is right, (N,).
        suggested: The most probable true class, (N,).
        probability: The probability of this class, (N,).
        confusions: How many rows of true class i are expected to have the label j, (K, K).
    """

    right: Numbers
    suggested: npt.NDArray[np.int64]
    probability: Numbers
    confusions: Numbers

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """The rows, the most doubtful first."""
        return np.argsort(self.right, kind="stable")

    @property
    def wrong(self) -> float:
        """How many labels are expected to be wrong."""
        return float((1 - self.right).sum())


class Confusion(NamedTuple):
    """How many rows of a true class have the label of another one.

    Attributes:
        true: The true class.
        label: The label.
        rows: How many rows are expected.
        share: Their share of the rows of the true class.
    """

    true: str
    label: str
    rows: float
    share: float


def doubt(posterior: Numbers, labels: npt.NDArray[np.int64], noise: Transition) -> Doubt:
    """Return what out-of-sample posteriors say about labels; see `postmax.tabular.noise.true_class`.

    Args:
        posterior: P(true class | row), (N, K), by networks that did not see the row.
        labels: The labels as given, (N,).
        noise: The noise of the labels.

    Example:
        >>> found = doubt(np.array([[0.9, 0.1]]), np.array([1]), Transition([[0.8, 0.2], [0.2, 0.8]]))
        >>> found.right.round(2), found.suggested
        (array([0.31]), array([0]))
    """
    k = noise.num_classes
    true = true_class(torch.from_numpy(posterior), torch.from_numpy(labels), noise).numpy()
    confusions = np.zeros((k, k))
    np.add.at(confusions.T, labels, true)
    rows = np.arange(len(labels))
    suggested = true.argmax(1)
    return Doubt(true[rows, labels], suggested, true[rows, suggested], confusions)


def largest_confusions(confusions: Numbers, classes: Sequence[str], count: int) -> list[Confusion]:
    """Return the largest numbers beside the diagonal, those of half a row or more."""
    beside = confusions - np.diag(np.diag(confusions))
    sizes = confusions.sum(1)
    order = np.argsort(-beside, axis=None, kind="stable")[:count]
    places = [divmod(int(place), len(classes)) for place in order]
    return [
        Confusion(classes[i], classes[j], float(beside[i, j]), float(beside[i, j] / sizes[i]))
        for i, j in places
        if beside[i, j] >= 0.5
    ]
