"""Anchor points (Patrini et al. 2017): the row most surely of class i shows what becomes of class i."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.estimation.catalogue import register
from postmax.estimation.counts import keep_unseen, normalise_rows, prior_behind
from postmax.estimation.estimator import RowTensors, Solution
from postmax.estimation.evidence import Evidence


@dataclass(frozen=True)
class AnchorPoints:
    """T[i] = p(x*), x* the row with the largest probability of class i.

    Args:
        percentile: Take the largest probability below this percentile instead of the largest of all, which may be an
            outlier; published with 97 for ten classes and None for a hundred.
    """

    percentile: float | None = None

    def __post_init__(self) -> None:
        if self.percentile is not None and not 0 < self.percentile <= 100:
            raise InputError(f"a percentile lies in (0, 100], got {self.percentile}.")

    def rows(self, evidence: Evidence) -> RowTensors:
        """Probabilities and labels."""
        return evidence.out_of_sample, evidence.labels

    def solve(self, rows: RowTensors, num_classes: int, start: Solution | None = None) -> Solution:  # noqa: ARG002
        """The probabilities of the anchors, row by row."""
        probabilities, labels = rows
        matrix = keep_unseen(normalise_rows(probabilities[anchors(probabilities, self.percentile)]), labels)
        return Solution(matrix, prior_behind(matrix, labels))


def anchors(probabilities: Tensor, percentile: float | None) -> Tensor:
    """The row index of each class's anchor.

    The published filter sets the largest entries of a column to zero in place, which later classes then read; here
    nothing is changed.
    """
    if percentile is None:
        return probabilities.argmax(0)
    ranked = probabilities.sort(0)
    position = math.ceil(percentile / 100 * (len(probabilities) - 1))
    below = (ranked.values < ranked.values[position]).sum(0)
    # Where predictions are hard, the row at the percentile is as sure as the surest, or as little of a rare class as
    # the rest: there is no outlier to leave out, and the largest counts.
    surest = (ranked.values[position] == ranked.values[-1]) & (position < len(probabilities) - 1)
    tied = (below == 0) | surest
    chosen = torch.where(tied, len(probabilities), below) - 1
    return ranked.indices[chosen, torch.arange(probabilities.shape[1])]


register("anchor", AnchorPoints(), aliases=("anchor-points",), order=3)
register(
    "anchor-97",
    AnchorPoints(percentile=97),
    summary="Anchor points that leave out the top 3 % of the probabilities of each class.",
    order=4,
)
