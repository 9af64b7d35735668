"""Total-variation regularisation: a network learns with the matrix, and is paid for telling rows apart.

Zhang, Niu and Sugiyama, Learning noise transition matrix from only noisy labels via total variation regularization,
ICML 2021.
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
from postmax.estimation.trained_posterior import log_mixed, posterior_after, solution_for


@dataclass(frozen=True)
class TotalVariation:
    """Total variation: minimise −log(pT)[label] − γ·½‖p − p′‖₁ over the network p and the matrix T, for pairs of rows.

    Many pairs of a posterior and a matrix explain the same labels. The second term prefers the posterior that tells the
    rows apart best, which leaves the most noise to the matrix. It is never above 1, so the objective has a minimum.

    T is learnt by gradient descent, as in one of the two published variants; the other one draws it from Dirichlet
    distributions. It has the form of VolMinNet, in which the diagonal is the largest entry of each row. The published
    softmax of each row has no order for two classes at its start, and came less near the matrix in our short trainings.
    At last T is fitted once more to the posterior of all rows, by maximum likelihood.

    The published code adds 1e-32 to a probability before it takes its logarithm. Here sums of probabilities are
    computed from logarithms, which needs no such number. Its pairs may be twice the same row. Here each row is paired
    with its neighbour in the batch, which is in random order.

    Args:
        weight: γ; the paper uses 0.1.

    The network is not trained again on resampled rows, so the interval does not include its variation.
    """

    weight: float = 0.1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise InputError(f"the weight of the total variation is a number of at least 0, got {self.weight}.")

    def rows(self, evidence: Evidence) -> RowTensors:
        """Return the clean posterior of the trained network for each row, and the labels."""
        off = nn.Parameter(initial_parameters(evidence.num_classes))

        def loss(logits: Tensor, labels: Tensor) -> Tensor:
            return self._objective(logits.log_softmax(1), labels, off)

        return posterior_after(loss, [off], evidence, "total variation"), evidence.labels

    def solve(self, rows: RowTensors, num_classes: int, start: Solution | None = None) -> Solution:
        """Return the best matrix for the trained network."""
        return solution_for(rows, num_classes, start)

    def _objective(self, log_p: Tensor, labels: Tensor, off: Tensor) -> Tensor:
        return -log_mixed(log_p, matrix_of(off), labels).mean() - self.weight * variation(log_p.exp())


def variation(posterior: Tensor) -> Tensor:
    """Return the mean of ½‖p − p′‖₁ over all rows p and the row p′ before each of them.

    Example:
        >>> import torch
        >>> variation(torch.tensor([[1.0, 0.0], [0.8, 0.2], [0.5, 0.5]]))
        tensor(0.3333)
    """
    return (posterior - posterior.roll(1, 0)).abs().sum(1).mean() / 2


register("tv", TotalVariation(), aliases=("total-variation", "tvr"), order=9)
