"""Cycle consistency: what goes from classes to labels and back must arrive where it started.

Cheng, Ning, Xia, Liu, Gong and Sugiyama, Class-dependent label-noise learning with cycle-consistency regularization,
NeurIPS 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor, nn

from postmax.errors import InputError
from postmax.estimation.catalogue import register
from postmax.estimation.diagonal_form import initial_parameters, matrix_of
from postmax.estimation.estimator import RowTensors, Solution
from postmax.estimation.evidence import Evidence
from postmax.estimation.trained_posterior import log_entries, log_mixed, posterior_after, solution_for


@dataclass(frozen=True)
class CycleConsistency:
    """Cycle consistency: a matrix T from classes to labels and a matrix B back are trained with the network p.

    With the predicted class ŷ of a row, the objective is −log(pT)[label] − log B[label, ŷ] − λ·log(pTB)[ŷ]. The first
    term trains the network and T, and the second one trains B. The third one trains the network alone: a prediction
    that is sent through both matrices must come back.

    The published code gives B the softmax of the one-hot label, which is almost uniform for many classes. Here B gets
    the label itself, so that row y of B is P(true class | label y). At last T is fitted once more to the posterior of
    all rows, by maximum likelihood. There is no phase before with cross-entropy and a reward for doubt.

    Args:
        weight: λ; the paper uses 0.3.

    The network is not trained again on resampled rows, so the interval does not include its variation.
    """

    weight: float = 0.3

    def __post_init__(self) -> None:
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise InputError(f"the weight of the cycle is a number of at least 0, got {self.weight}.")

    def rows(self, evidence: Evidence) -> RowTensors:
        """Return the clean posterior of the trained network for each row, and the labels."""
        forth, back = (nn.Parameter(initial_parameters(evidence.num_classes)) for _ in range(2))

        def loss(logits: Tensor, labels: Tensor) -> Tensor:
            return self._objective(logits.log_softmax(1), labels, forth, back)

        return posterior_after(loss, [forth, back], evidence, "cycle consistency"), evidence.labels

    def solve(self, rows: RowTensors, num_classes: int, start: Solution | None = None) -> Solution:
        """Return the best matrix for the trained network."""
        return solution_for(rows, num_classes, start)

    def _objective(self, log_p: Tensor, labels: Tensor, forth: Tensor, back: Tensor) -> Tensor:
        to_label, to_class = matrix_of(forth), matrix_of(back)
        predicted = log_p.detach().argmax(1)
        fit = log_mixed(log_p, to_label, labels)
        way_back = log_entries(to_class)[labels, predicted]
        cycle = log_mixed(log_p, (to_label @ to_class).detach(), predicted)
        return -(fit + way_back + self.weight * cycle).mean()


register("cycle", CycleConsistency(), aliases=("cycle-consistency",), order=10)
