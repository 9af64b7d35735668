"""The answer: a matrix, how sure it is, and what it could not find out."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from postmax.files import atomic_write
from postmax.transition import Transition
from postmax.transition.estimate_file import FORMAT, read_estimate


@dataclass(frozen=True, eq=False)
class TransitionEstimate:
    """An estimated transition matrix.

    Attributes:
        transition: The matrix, ready for a correction.
        prior: The estimated frequencies of the true classes.
        noise_rate: The estimated share of wrong labels.
        interval: Lower and upper bound of each entry of the matrix, (K, K) each: bootstrap percentiles.
        sampling_interval: Of the noise rate, by bootstrap: how far the method would move on other rows.
        noise_rate_interval: The same, and where the method can tell (`fpml`) wide enough for what the labels cannot
            tell: from "no doubtful row is mislabelled" to "every row whose label is not its most probable class is". It
            starts at 0 if the labels can be explained without any noise. It assumes that each class has clear rows.
        level: The level of the intervals.
        method: The name of the method.
        classes: What the indices stand for.
        rows: The number of labels it rests on.
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
        """How much inverting the matrix amplifies errors."""
        return self.transition.condition_number

    def __repr__(self) -> str:
        low, high = self.noise_rate_interval
        trouble = f", {len(self.unidentified)} classes unidentified" if self.unidentified else ""
        return (
            f"TransitionEstimate({self.method}, K={len(self.classes)}, noise rate {self.noise_rate:.1%} "
            f"[{low:.1%}, {high:.1%}], condition number {self.condition_number:.2g}{trouble})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists and numbers."""
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

    def save(self, path: str | Path) -> None:
        """Write everything as JSON, atomically."""
        with atomic_write(path) as file:
            file.write(json.dumps(self.to_dict(), allow_nan=False).encode())

    @classmethod
    def load(cls, path: str | Path) -> TransitionEstimate:
        """Read what `save` wrote.

        Raises:
            DataError: If the file is missing, damaged or something else.
        """
        return cls(**read_estimate(path))
