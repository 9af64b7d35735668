"""VolMinNet (Li et al. 2021): train network and matrix together, and make the volume of the matrix small."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from postmax.estimation.catalogue import register
from postmax.estimation.counts import keep_unseen, prior_behind
from postmax.estimation.estimator import RowTensors, Solution
from postmax.estimation.evidence import Evidence
from postmax.estimation.network import Copies, train

_STEPS = 50
_LEAST_VOLUME = 1e-6


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
        features, k = evidence.require_features("VolMinNet"), evidence.num_classes
        generator = torch.Generator().manual_seed(evidence.seed)
        network = Copies(1, features, k, generator)
        off = nn.Parameter(_initial(k))

        def loss(logits: Tensor, labels: Tensor) -> Tensor:
            return self._objective(logits.softmax(1), labels, off)

        train(network, features, evidence.labels, torch.arange(len(features))[None], loss, extra=[off])
        with torch.no_grad():
            chunks = [network(rows[None])[0].double().softmax(1) for rows in features.split(8192)]
        return torch.cat(chunks), evidence.labels

    def solve(self, rows: RowTensors, num_classes: int, start: Solution | None = None) -> Solution:
        """Return the best matrix for the trained network."""
        posterior, labels = rows
        off = _initial(num_classes).double() if start is None else _off_diagonal(start.matrix)
        off.requires_grad_()
        optimiser = torch.optim.LBFGS([off], max_iter=_STEPS, line_search_fn="strong_wolfe")

        def objective() -> Tensor:
            optimiser.zero_grad()
            value = self._objective(posterior, labels, off)
            value.backward()
            return value.detach()

        optimiser.step(objective)
        matrix = keep_unseen(_matrix(off.detach()), labels)
        return Solution(matrix, prior_behind(matrix, labels))

    def _objective(self, posterior: Tensor, labels: Tensor, off: Tensor) -> Tensor:
        matrix = _matrix(off)
        likelihood = (posterior * matrix.T[labels]).sum(1).clamp_min(torch.finfo(posterior.dtype).tiny)
        # With features that carry no information the volume goes to zero, where its logarithm has no gradient.
        least = _LEAST_VOLUME * torch.eye(len(matrix), dtype=matrix.dtype)
        volume: Tensor = torch.linalg.slogdet(matrix + least).logabsdet
        return self.volume_weight * volume - likelihood.log().mean()


def _initial(num_classes: int) -> Tensor:
    """Return the published start (−2 for ten classes, −4.5 for a hundred): a label is kept about half of the time."""
    share = min(0.5, 1.07 / (num_classes - 1))
    return torch.full((num_classes, num_classes), math.log(share / (1 - share)))


def _matrix(off: Tensor) -> Tensor:
    """Return rows of I + σ(off) without its diagonal, normalised."""
    k = len(off)
    eye = torch.eye(k, dtype=off.dtype)
    weights = eye + off.sigmoid() * (1 - eye)
    return weights / weights.sum(1, keepdim=True)


def _off_diagonal(matrix: Tensor) -> Tensor:
    """Return the parameters of a matrix whose diagonal is the largest entry of each row."""
    ratio = (matrix / matrix.diagonal()[:, None]).clamp(1e-9, 1 - 1e-9)
    return (ratio / (1 - ratio)).log()


register("volmin", VolumeMinimisation(), aliases=("volminnet",), order=7)
