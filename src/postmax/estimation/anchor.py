"""Anchor points (Patrini et al. 2017): the row that most surely is of class i shows which labels class i gets."""

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
    """Anchor points: T[i] = p(x*), where x* is the row with the largest probability of class i.

    Args:
        percentile: Take the largest probability below this percentile, because the largest of all may be an outlier.
            None takes the largest. The paper uses 97 for ten classes and None for a hundred.
    """

    percentile: float | None = None

    def __post_init__(self) -> None:
        if self.percentile is not None and not 0 < self.percentile <= 100:
            raise InputError(f"a percentile lies in (0, 100], got {self.percentile}.")

    def rows(self, evidence: Evidence) -> RowTensors:
        """Return probabilities and labels."""
        return evidence.out_of_sample, evidence.labels

    def solve(self, rows: RowTensors, num_classes: int, start: Solution | None = None) -> Solution:  # noqa: ARG002
        """Return the matrix whose rows are the probabilities of the anchors."""
        probabilities, labels = rows
        matrix = keep_unseen(normalise_rows(probabilities[anchors(probabilities, self.percentile)]), labels)
        return Solution(matrix, prior_behind(matrix, labels))


def anchors(probabilities: Tensor, percentile: float | None) -> Tensor:
    """Return the position of the anchor of each class.

    The published code sets the largest entries of a column to zero in place, which changes the result of later classes.
    Here the probabilities are not changed.
    """
    if percentile is None:
        return probabilities.argmax(0)
    ranked = probabilities.sort(0)
    position = math.ceil(percentile / 100 * (len(probabilities) - 1))
    below = (ranked.values < ranked.values[position]).sum(0)
    # If predictions are hard, the probability at the percentile equals the largest one (or the smallest, for a rare
    # class). Then there is no outlier to leave out, and the largest probability is taken.
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
