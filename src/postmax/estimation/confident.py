"""The confident joint (Northcutt et al. 2021): count the rows whose confident class differs from their label."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from postmax.estimation.catalogue import register
from postmax.estimation.counts import count_pairs, normalise_rows
from postmax.estimation.estimator import RowTensors, Solution
from postmax.estimation.evidence import Evidence

_ROUNDING = 1e-9


@dataclass(frozen=True)
class ConfidentJoint:
    """The confident joint: counts of (confident class, label), scaled to the number of rows of each label."""

    def rows(self, evidence: Evidence) -> RowTensors:
        """Return probabilities and labels."""
        return evidence.out_of_sample, evidence.labels

    def solve(self, rows: RowTensors, num_classes: int, start: Solution | None = None) -> Solution:  # noqa: ARG002
        """Return the matrix and the prior that follow from the joint counts of true class and label."""
        probabilities, labels = rows
        joint = count_pairs(*confident_pairs(probabilities, labels), num_classes)
        label_count = torch.bincount(labels, minlength=num_classes).double()
        # If a label has no confident row, all its rows count as right.
        joint = joint + torch.diag((joint.sum(0) == 0).double())
        joint = joint / joint.sum(0) * label_count
        return Solution(normalise_rows(joint), joint.sum(1) / joint.sum())


def confident_pairs(probabilities: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return (confident class, label) of the rows that have a confident class.

    A class is confident for a row if its probability there reaches its mean probability among the rows with its own
    label. If there are several such classes, the most probable one counts.
    """
    k = probabilities.shape[1]
    own = probabilities.gather(1, labels[:, None]).flatten()
    count = torch.bincount(labels, minlength=k)
    threshold = torch.zeros(k, dtype=own.dtype).index_add_(0, labels, own) / count
    # A mean of equal numbers may exceed them by a rounding error.
    reaches = probabilities >= (1 - _ROUNDING) * threshold.nan_to_num(nan=torch.inf)
    confident = reaches.any(1)
    chosen = probabilities.masked_fill(~reaches, -1).argmax(1)
    return chosen[confident], labels[confident]


register("confident-joint", ConfidentJoint(), order=6)
