"""Dual-T (Yao et al. 2020): through the predicted class, one half by anchors and one by counting."""

from __future__ import annotations

from dataclasses import dataclass

from postmax.estimation.anchor import AnchorPoints, anchors
from postmax.estimation.evidence import Evidence
from postmax.estimation.method import Rows, Solution, count_pairs, keep_unseen, normalise_rows, prior_behind


@dataclass(frozen=True)
class DualT:
    """T = T♣·T♠: true class → predicted class from anchor points, predicted class → noisy label from counts.

    Rows are normalised, and a class that is never predicted keeps its label; the published code has rows that do not
    sum to one, and zeros for such a class.
    """

    percentile: float | None = 97

    def rows(self, evidence: Evidence) -> Rows:
        """Probabilities and labels."""
        return AnchorPoints(self.percentile).rows(evidence)

    def solve(self, rows: Rows, num_classes: int, start: Solution | None = None) -> Solution:  # noqa: ARG002
        """The product of both halves."""
        probabilities, labels = rows
        to_predicted = normalise_rows(probabilities[anchors(probabilities, self.percentile)])
        to_label = normalise_rows(count_pairs(probabilities.argmax(1), labels, num_classes))
        matrix = keep_unseen(normalise_rows(to_predicted @ to_label), labels)
        return Solution(matrix, prior_behind(matrix, labels))
