"""From the posterior of the noisy label to sharper scores of the true class, before the noise is known well."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.estimation.counts import normalise_rows

_TOP_SHARE, _TOP_LEAST = 0.3, 30
# A step costs N·K² operations; twenty steps already take most of the noise out.
_MOST_STEPS, _FEWEST_STEPS = 100, 20
_CHUNK_ELEMENTS = 2**22


def unmix(probabilities: Tensor, labels: Tensor) -> Tensor:
    """The posterior of the true class under a first guess of the matrix, positive everywhere.

    A posterior that fits noisy labels well levels off at the rows of T, and such levels look like ambiguity, not like
    noise. Undoing a first guess of T takes the levels away. D maximises Σ_j p_j·log(Tᵀd)_j over the simplex by the
    multiplicative steps of Richardson and Lucy; stopped early, they stay positive and keep the order of rows that an
    inverse followed by a projection would throw together at a corner.
    """
    first_guess = labels_of_the_surest(probabilities, labels)
    return torch.cat([_undo(chunk, first_guess) for chunk in probabilities.split(_chunk_rows(len(first_guess)))])


def labels_of_the_surest(probabilities: Tensor, labels: Tensor) -> Tensor:
    """T[i]: the labels of the rows that are most surely of class i, the surest third of those predicted as i.

    Labels are counted because the probabilities themselves may be badly calibrated.
    """
    n, k = probabilities.shape
    predicted = torch.bincount(probabilities.argmax(1), minlength=k)
    counted = torch.eye(k, dtype=torch.float64) + 0.5 / k
    for i, size in enumerate(predicted.tolist()):
        surest = probabilities[:, i].topk(min(n, max(_TOP_LEAST, int(_TOP_SHARE * size)))).indices
        counted[i] += torch.bincount(labels[surest], minlength=k)
    return normalise_rows(counted)


def _undo(noisy: Tensor, matrix: Tensor) -> Tensor:
    k = len(matrix)
    clean = torch.full_like(noisy, 1 / k)
    for _ in range(max(_FEWEST_STEPS, min(_MOST_STEPS, 10_000 // k))):
        clean = clean * ((noisy / (clean @ matrix).clamp_min(1e-300)) @ matrix.T)
    return clean


def _chunk_rows(num_classes: int) -> int:
    return max(1, _CHUNK_ELEMENTS // num_classes)
