"""VolMinNet (Li et al. 2021): train network and matrix together, and make the volume of the matrix small."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from postmax.estimation.catalogue import register
from postmax.estimation.counts import keep_unseen, prior_behind
from postmax.estimation.diagonal_form import initial_parameters, log_volume, matrix_of, parameters_of
from postmax.estimation.estimator import RowTensors, Solution
from postmax.estimation.evidence import Evidence
from postmax.estimation.trained_posterior import posterior_after

_STEPS = 50


@dataclass(frozen=True)
class VolumeMinimisation:
    """Volume minimisation: minimise −log(Tᵀp(x))[label] + λ·log|det T| over the network p and the matrix T.

    Args:
        volume_weight: λ; the paper uses 1e-4.

    The network is not trained again on resampled rows, so the interval does not include its variation.
    """

    volume_weight: float = 1e-4

    def rows(self, evidence: Evidence) -> RowTensors:
        """Return the clean posterior of the trained network for each row, and the labels."""
        off = nn.Parameter(initial_parameters(evidence.num_classes))

        def loss(logits: Tensor, labels: Tensor) -> Tensor:
            return self._objective(logits.softmax(1), labels, off)

        return posterior_after(loss, [off], evidence, "VolMinNet"), evidence.labels

    def solve(self, rows: RowTensors, num_classes: int, start: Solution | None = None) -> Solution:
        """Return the best matrix for the trained network."""
        posterior, labels = rows
        off = initial_parameters(num_classes).double() if start is None else parameters_of(start.matrix)
        off.requires_grad_()
        optimiser = torch.optim.LBFGS([off], max_iter=_STEPS, line_search_fn="strong_wolfe")

        def objective() -> Tensor:
            optimiser.zero_grad()
            value = self._objective(posterior, labels, off)
            value.backward()
            return value.detach()

        optimiser.step(objective)
        matrix = keep_unseen(matrix_of(off.detach()), labels)
        return Solution(matrix, prior_behind(matrix, labels))

    def _objective(self, posterior: Tensor, labels: Tensor, off: Tensor) -> Tensor:
        matrix = matrix_of(off)
        likelihood = (posterior * matrix.T[labels]).sum(1).clamp_min(torch.finfo(posterior.dtype).tiny)
        return self.volume_weight * log_volume(matrix) - likelihood.log().mean()


register("volmin", VolumeMinimisation(), aliases=("volminnet",), order=7)
