"""Dual-T (Yao et al. 2020): one factor of the matrix from anchor points, the other from counts."""

from __future__ import annotations

from dataclasses import dataclass

from postmax.estimation.anchor import AnchorPoints, anchors
from postmax.estimation.catalogue import register
from postmax.estimation.counts import count_pairs, keep_unseen, normalise_rows, prior_behind
from postmax.estimation.estimator import RowTensors, Solution
from postmax.estimation.evidence import Evidence


@dataclass(frozen=True)
class DualT:
    """Dual-T: T = T♣·T♠, with true class → predicted class from anchors, and predicted class → label from counts.

    The rows of both matrices are normalised, and a class that is never predicted keeps its label. In the published code
    rows do not sum to one, and such a class has a row of zeros.
    """

    percentile: float | None = 97

    def rows(self, evidence: Evidence) -> RowTensors:
        """Return probabilities and labels."""
        return AnchorPoints(self.percentile).rows(evidence)

    def solve(self, rows: RowTensors, num_classes: int, start: Solution | None = None) -> Solution:  # noqa: ARG002
        """Return the product of both factors."""
        probabilities, labels = rows
        to_predicted = normalise_rows(probabilities[anchors(probabilities, self.percentile)])
        to_label = normalise_rows(count_pairs(probabilities.argmax(1), labels, num_classes))
        matrix = keep_unseen(normalise_rows(to_predicted @ to_label), labels)
        return Solution(matrix, prior_behind(matrix, labels))


register("dual-t", DualT(), order=5)
