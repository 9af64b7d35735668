"""The noise that explains labels, if the posterior of the true class is known."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from postmax.estimation import Evidence, RowTensors, Solution
from postmax.estimation.counts import count_pairs, keep_unseen, normalise_rows

_STEPS, _TOLERANCE = 500, 1e-7


@dataclass(frozen=True)
class KnownPosterior:
    """Maximum likelihood of T in P(label | x) = Σ_i D_i(x)·T[i, label], where D is given, by EM.

    The likelihood is concave in T, so the steps of EM reach its maximum from any start without zeros.
    """

    def rows(self, evidence: Evidence) -> RowTensors:
        """Return the posteriors of the true class, and the labels."""
        return evidence.out_of_sample, evidence.labels

    def solve(self, rows: RowTensors, num_classes: int, start: Solution | None = None) -> Solution:
        """Return the matrix."""
        posterior, labels = rows
        # No entry starts at zero, or it would stay there.
        begin = count_pairs(posterior.argmax(1), labels, num_classes) + 1 / num_classes
        matrix = normalise_rows(begin) if start is None else 0.99 * start.matrix + 0.01 / num_classes
        prior = posterior.mean(0)
        for _ in range(_STEPS):
            joint = posterior * matrix.T[labels]
            true = joint / joint.sum(1, keepdim=True).clamp_min(1e-300)
            counts = torch.zeros_like(matrix).index_add_(0, labels, true).T
            new = normalise_rows(counts)
            change = float((new - matrix).abs().max())
            matrix, prior = new, counts.sum(1) / len(labels)
            if change < _TOLERANCE:
                break
        return Solution(keep_unseen(matrix, labels), prior)
