"""Bootstrap: how much an estimate changes on other rows of the same source."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from postmax.estimation.estimator import RowTensors, Solution, TransitionEstimator
from postmax.progress import Stage, tell

# All replicates of a K×K matrix are kept in memory: a hundred of them take 800 MB for K = 1000. Each replicate also
# goes over N·K numbers many times. These limits keep memory and time within bounds.
_KEPT_ELEMENTS, _PASSED_ELEMENTS = 3 * 10**7, 4 * 10**8
_FEWEST = 10


@dataclass(frozen=True)
class Replicates:
    """The solutions on resampled rows."""

    matrices: Tensor
    noise_rates: Tensor
    bounds: Tensor | None

    def interval(self, values: Tensor, level: float) -> tuple[Tensor, Tensor]:
        """Return bounds between which a share `level` of `values` lies (replicates are the first dimension).

        The bounds are percentiles. With too few replicates percentiles are much too narrow, so Student's t is used.
        """
        tail = (1 - level) / 2
        if len(values) * tail >= 1:
            low, high = torch.quantile(values, torch.tensor([tail, 1 - tail], dtype=values.dtype), dim=0)
            return low, high
        reach = _student_t(1 - tail, len(values) - 1) * values.std(0)
        return (values.mean(0) - reach).clamp(0, 1), (values.mean(0) + reach).clamp(0, 1)


def _student_t(probability: float, freedom: int) -> float:
    """Return a quantile of Student's distribution: exact for one and two degrees of freedom, otherwise an expansion."""
    if freedom == 1:
        return math.tan(math.pi * (probability - 0.5))
    if freedom == 2:
        return (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    z = float(torch.special.ndtri(torch.tensor(probability, dtype=torch.float64)))
    terms = (z, (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return math.fsum(term / freedom**power for power, term in enumerate(terms))


def bootstrap(
    estimator: TransitionEstimator, rows: RowTensors, solution: Solution, num_classes: int, replicates: int, seed: int
) -> Replicates:
    """Solve again on rows that are drawn with replacement.

    Networks and neighbours are not computed again, so the interval does not include their variation.
    """
    n = len(rows[0])
    affordable = max(_FEWEST, min(_KEPT_ELEMENTS // num_classes**2, _PASSED_ELEMENTS // (n * num_classes)))
    generator = torch.Generator().manual_seed(seed)
    solved = []
    count = min(replicates, affordable)
    for number in range(count):
        drawn = torch.randint(n, (n,), generator=generator)
        solved.append(estimator.solve(tuple(part[drawn] for part in rows), num_classes, solution))
        tell(Stage("drawing rows again for the intervals", number + 1, count, "times"))
    bounds = [one.bounds for one in solved if one.bounds is not None]
    return Replicates(
        matrices=torch.stack([one.matrix for one in solved]),
        noise_rates=torch.tensor([one.noise_rate for one in solved], dtype=torch.float64),
        bounds=torch.tensor(bounds, dtype=torch.float64) if bounds else None,
    )
