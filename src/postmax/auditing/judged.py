"""Rows with what a model says about them, as detectors see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from postmax.checking import Examined
from postmax.checking.features import encoded

Numbers = npt.NDArray[np.float64]
_SHOWN = 20


@dataclass(frozen=True)
class Judged:
    """Rows that were judged. Of large data only some rows are looked at.

    Attributes:
        data: The rows: columns and labels.
        posterior: P(true class | row) of these rows, (N, K), by a model that did not see them.
        right: The probability that each label is right, (N,).
    """

    data: Examined
    posterior: Numbers
    right: Numbers

    @cached_property
    def features(self) -> Numbers:
        """The scaled features, (N, d); d is 0 where there are none."""
        if self.data.images is not None:
            return np.zeros((len(self.data), 0))
        found: Numbers = encoded(self.data, np.arange(len(self.data))).double().numpy()
        return found

    @property
    def codes(self) -> npt.NDArray[np.int64]:
        """The labels, as class indices."""
        return self.data.codes

    @cached_property
    def agrees(self) -> npt.NDArray[np.bool_]:
        """Whether the most probable class of a row is its label."""
        found: npt.NDArray[np.bool_] = self.posterior.argmax(1) == self.codes
        return found

    def name(self, code: int) -> str:
        """Return the name of a class as a message writes it."""
        return repr(self.data.classes[code][:60])

    def some(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> str:
        """Return what messages call some rows; of many the first five."""
        return self.data.some(rows)

    def at(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> tuple[int, ...]:
        """Return the places of the first of some rows in the data."""
        return self.data.at(rows)


def judged(data: Examined, posterior: Numbers, right: Numbers) -> Judged:
    """Return the rows of `data` with what is said about them.

    Args:
        data: Rows that are looked at, of all rows.
        posterior: The posterior of all rows.
        right: The probability that the label is right, of all rows.
    """
    return Judged(data, posterior[data.places], right[data.places])
