"""The result of an estimate: a matrix, its intervals, and the classes that it says too little about."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from postmax.files import atomic_write
from postmax.transition import Transition
from postmax.transition.estimate_file import FORMAT, estimate_fields, read_estimate


@dataclass(frozen=True, eq=False)
class TransitionEstimate:
    """An estimated transition matrix.

    Attributes:
        transition: The matrix, ready for a correction.
        prior: The estimated frequencies of the true classes.
        noise_rate: The estimated share of wrong labels.
        interval: Lower and upper bound of each entry of the matrix, (K, K) each, by bootstrap.
        sampling_interval: The interval of the noise rate by bootstrap: how much it would change on other rows.
        noise_rate_interval: The interval of the noise rate that also includes what labels cannot tell, if the estimator
            knows it (`fpml`). It reaches from "no doubtful row is mislabelled" to "every row whose label is not its
            most probable class is mislabelled". It starts at 0 if the labels can be explained without noise. It assumes
            that each class has clear rows.
        level: The level of the intervals.
        method: The name of the estimator.
        classes: The names of the classes.
        rows: The number of labels.
        unidentified: Classes whose row of the matrix should not be relied on, with the reason.
    """

    transition: Transition
    prior: Tensor
    noise_rate: float
    interval: tuple[Tensor, Tensor]
    sampling_interval: tuple[float, float]
    noise_rate_interval: tuple[float, float]
    level: float
    method: str
    classes: tuple[str | int, ...]
    rows: int
    unidentified: dict[str | int, str]

    @property
    def matrix(self) -> Tensor:
        """P[i, j] = P(label j | true class i), row-stochastic."""
        return self.transition.matrix

    @property
    def condition_number(self) -> float:
        """The factor by which the inverse of the matrix can amplify errors."""
        return self.transition.condition_number

    def __repr__(self) -> str:
        low, high = self.noise_rate_interval
        trouble = f", {len(self.unidentified)} classes unidentified" if self.unidentified else ""
        return (
            f"TransitionEstimate({self.method}, K={len(self.classes)}, noise rate {self.noise_rate:.1%} "
            f"[{low:.1%}, {high:.1%}], condition number {self.condition_number:.2g}{trouble})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists and numbers."""
        return {
            "format": FORMAT,
            "method": self.method,
            "rows": self.rows,
            "classes": list(self.classes),
            "noise_rate": self.noise_rate,
            "noise_rate_interval": list(self.noise_rate_interval),
            "sampling_interval": list(self.sampling_interval),
            "level": self.level,
            "condition_number": self.condition_number if math.isfinite(self.condition_number) else None,
            "prior": self.prior.tolist(),
            "unidentified": [[name, reason] for name, reason in self.unidentified.items()],
            "matrix": self.matrix.tolist(),
            "lower": self.interval[0].tolist(),
            "upper": self.interval[1].tolist(),
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any], where: str = "the estimate") -> TransitionEstimate:
        """Return the estimate that `to_dict` described.

        Raises:
            DataError: If the content is not an estimate. `where` names it in the message.
        """
        return cls(**estimate_fields(content, where))

    def save(self, path: str | Path) -> None:
        """Write everything as JSON into a file, which appears when it is complete."""
        with atomic_write(path) as file:
            file.write(json.dumps(self.to_dict(), allow_nan=False).encode())

    @classmethod
    def load(cls, path: str | Path) -> TransitionEstimate:
        """Read a file that `save` wrote.

        Raises:
            DataError: If the file is missing, damaged or of another format.
        """
        return cls(**read_estimate(path))
