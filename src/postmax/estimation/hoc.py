"""HOC (Zhu et al. 2021): a row and its two nearest neighbours count as one true class with three labels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.estimation.catalogue import register
from postmax.estimation.counts import keep_unseen, normalise_rows
from postmax.estimation.estimator import RowTensors, Solution
from postmax.estimation.evidence import Evidence
from postmax.estimation.neighbours import nearest_neighbours

_STEPS, _TOLERANCE = 2000, 1e-9
_CHUNK_ELEMENTS = 2**22


@dataclass(frozen=True)
class HighOrderConsensus:
    """High-order consensus: the matrix that explains how often a row and its two neighbours have the same label.

    The model is P(three labels) = Σ_a p_a·T[a, y1]·T[a, y2]·T[a, y3]. The published code matches the first three
    moments of a sample of 15 000 rows by gradient descent on a K³ tensor. Here the same model is fitted to all rows by
    maximum likelihood (expectation–maximisation over the distinct triples), which has no step size and works for K =
    1000. The bootstrap treats triples as independent, although neighbouring rows share labels. So its interval is too
    narrow.
    """

    def rows(self, evidence: Evidence) -> RowTensors:
        """Return the labels of the row, of its nearest neighbour, and of the second nearest."""
        features = evidence.require_features("HOC")
        if len(features) < 3:
            raise InputError(f"HOC compares a row with two neighbours; there are {len(features)} rows.")
        return (torch.cat([evidence.labels[:, None], evidence.labels[nearest_neighbours(features, 2)]], 1),)

    def solve(self, rows: RowTensors, num_classes: int, start: Solution | None = None) -> Solution:
        """Return the solution of expectation–maximisation from a matrix that mostly keeps labels, or from `start`."""
        triples, weight = rows[0].sort(1).values.unique(dim=0, return_counts=True)
        weight = weight.double() / weight.sum()
        if start is None:
            keeps = torch.eye(num_classes, dtype=torch.float64)
            start = Solution(
                0.8 * keeps + 0.2 / num_classes, torch.full((num_classes,), 1 / num_classes, dtype=torch.float64)
            )
        matrix, prior, last = start.matrix, start.prior, -torch.inf
        for _ in range(_STEPS):
            matrix, prior, fit = _step(matrix, prior, triples, weight)
            if fit - last < _TOLERANCE:
                break
            last = fit
        return Solution(keep_unseen(matrix, rows[0]), prior)


def _step(matrix: Tensor, prior: Tensor, triples: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, float]:
    """Return matrix, prior and log-likelihood after one step.

    It works in chunks, because for many classes the responsibilities of all triples do not fit in memory.
    """
    moved, mass, fit = torch.zeros_like(matrix), torch.zeros_like(prior), 0.0
    size = _CHUNK_ELEMENTS // len(prior) + 1
    for labels, share in zip(triples.split(size), weight.split(size), strict=True):
        joint = prior * matrix.T[labels].prod(1)
        total = joint.sum(1).clamp_min(1e-300)
        responsible = joint * (share / total)[:, None]
        fit += float(share @ total.log())
        mass += responsible.sum(0)
        for view in labels.T:
            moved.index_add_(1, view, responsible.T)
    return normalise_rows(moved), mass, fit


register("hoc", HighOrderConsensus(), order=8)
