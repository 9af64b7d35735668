"""The result of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from postmax.checking import CANNOT_TELL, Finding
from postmax.errors import InputError
from postmax.estimation import TransitionEstimate
from postmax.fitting.doubt import Confusion, Doubt, largest_confusions
from postmax.fitting.label_table import LabelTable
from postmax.transition import Transition

_CONFUSIONS = 10
THRESHOLD = 0.5


@dataclass(frozen=True, eq=False)
class Issues:
    """Rows worth a look, the most doubtful first.

    Attributes:
        table: The rows.
        expected_wrong: How many of their labels are expected to be wrong.
    """

    table: LabelTable
    expected_wrong: float

    def __len__(self) -> int:
        return self.table.rows

    @property
    def expected_precision(self) -> float:
        """The share of these labels that is expected to be wrong; 0 if there are no rows."""
        return self.expected_wrong / len(self) if len(self) else 0.0

    def __str__(self) -> str:
        return f"expected wrong among these {len(self)} rows: {self.expected_wrong:.0f}"


@dataclass(frozen=True, eq=False)
class Audit:
    """Which labels are wrong, and what they should be.

    Attributes:
        table: One row for each row of the data, in their order.
        noise_rate: The estimated share of wrong labels.
        interval: The range in which it lies, at 95 %.
        transition: P(label | true class), as it was estimated.
        findings: Everything else that a person should know about the data.
        classes: The names of the classes.
        doubt: What is believed about each label, as numbers of classes.
        estimate: The estimate of the noise; None if it was known.
    """

    table: LabelTable
    noise_rate: float
    interval: tuple[float, float]
    transition: Transition
    findings: tuple[Finding, ...]
    classes: tuple[str | int, ...]
    doubt: Doubt
    estimate: TransitionEstimate | None = None

    @property
    def cannot_tell(self) -> bool:
        """Whether the features say nothing about the labels. Then no label can be judged."""
        return any(one.kind == CANNOT_TELL for one in self.findings)

    @property
    def issues(self) -> Issues:
        """As many rows as labels are expected to be wrong; none if nothing can be told."""
        return self.most_doubtful(0 if self.cannot_tell else min(round(self.doubt.wrong), self.table.rows))

    @property
    def confusions(self) -> list[Confusion]:
        """Which classes are taken for which, the most frequent first."""
        return largest_confusions(self.doubt.confusions, tuple(map(str, self.classes)), _CONFUSIONS)

    def most_doubtful(self, count: int) -> Issues:
        """Return so many rows, the most doubtful first.

        Raises:
            InputError: If there are not so many rows.
        """
        if not 0 <= count <= self.table.rows:
            raise InputError(f"there are {self.table.rows} rows, so {count} of them cannot be shown.")
        rows = self.doubt.order[:count]
        return Issues(self.table.taken(rows), float((1 - self.doubt.right[rows]).sum()))

    def worth_changing(self, threshold: float = THRESHOLD) -> npt.NDArray[np.bool_]:
        """Return the rows whose label is worth changing: it is wrong with a probability above `threshold`.

        With the usual threshold of one half, a changed label is more often right than before. None is changed if
        nothing can be told about the labels.

        Raises:
            InputError: If the threshold is not between 0 and 1.
        """
        if not 0 <= threshold <= 1:
            raise InputError(f"the threshold is a probability from 0 to 1, not {threshold}.")
        doubted = (1 - self.doubt.right > threshold) & (self.table["suggested"] != self.table["given"])
        found: npt.NDArray[np.bool_] = doubted & (not self.cannot_tell)
        return found

    def corrected(self, threshold: float = THRESHOLD) -> npt.NDArray[Any]:
        """Return all labels, those that are worth changing replaced by the suggested ones."""
        found: npt.NDArray[Any] = np.where(self.worth_changing(threshold), self.table["suggested"], self.table["given"])
        return found

    def __repr__(self) -> str:
        low, high = self.interval
        return f"Audit({self.table.rows} rows, {self.noise_rate:.1%} wrong [{low:.1%}, {high:.1%}])"

    def __str__(self) -> str:
        low, high = self.interval
        rate = f"about {self.noise_rate:.1%} are wrong (95 % interval {low:.1%} to {high:.1%})"
        head = "nothing can be told about the labels" if self.cannot_tell else f"{rate}; {self.issues}"
        lines = [f"{self.table.rows} labels: {head}".replace("%", " %").replace("  %", " %")]
        lines += [f"  {one.true} labelled {one.label}: about {one.rows:.0f} rows" for one in self.confusions[:3]]
        return "\n".join([*lines, *(f"  {one.kind}: {one}" for one in self.findings)])
