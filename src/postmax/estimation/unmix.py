"""Turn the posterior of the noisy label into sharper scores of the true class, with a first guess of the noise."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.estimation.counts import normalise_rows
from postmax.progress import Stage, tell

_TOP_SHARE, _TOP_LEAST = 0.3, 30
# A step takes N·K² operations. Twenty steps already remove most of the noise.
_MOST_STEPS, _FEWEST_STEPS = 100, 20
_CHUNK_ELEMENTS = 2**22


def unmix(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Return the posterior of the true class under a first guess of the matrix. All entries are positive.

    A posterior that fits noisy labels well never exceeds the entries of T, which looks like ambiguity and not like
    noise. Undoing a first guess of T removes this limit. The result d maximises Σ_j p_j·log(Tᵀd)_j over the simplex, by
    the multiplicative steps of Richardson and Lucy. They are stopped early, so that all entries stay positive and the
    order of the rows is kept. The inverse of T and a projection would move many rows to the same corner of the simplex.
    """
    first_guess = labels_of_the_surest(probabilities, labels)
    parts, done = [], 0
    for chunk in probabilities.split(_chunk_rows(len(first_guess))):
        parts.append(undo(chunk, first_guess))
        done += len(chunk)
        tell(Stage("unmixing the probabilities", done, len(probabilities), "rows"))
    return torch.cat(parts)


def labels_of_the_surest(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Return the matrix T, where T[i] counts the labels of the rows that are most surely of class i.

    These are the surest third of the rows that are predicted as i.
    Labels are counted because the probabilities themselves may be badly calibrated.
    """
    n, k = probabilities.shape
    predicted = torch.bincount(probabilities.argmax(1), minlength=k)
    counted = torch.eye(k, dtype=torch.float64) + 0.5 / k
    for i, size in enumerate(predicted.tolist()):
        surest = probabilities[:, i].topk(min(n, max(_TOP_LEAST, int(_TOP_SHARE * size)))).indices
        counted[i] += torch.bincount(labels[surest], minlength=k)
    return normalise_rows(counted)


def undo(noisy: Tensor, matrix: Tensor, steps: int | None = None) -> Tensor:
    """Return the posterior of the true class behind that of the noisy label, for a known matrix; see `unmix`.

    Args:
        noisy: (N, K), P(label | x).
        matrix: The transition matrix, in the same precision.
        steps: How many multiplicative steps are made from the uniform posterior; by default up to a hundred.

    Example:
        >>> matrix = torch.tensor([[0.7, 0.3], [0.1, 0.9]])
        >>> undo(torch.tensor([[0.34, 0.66]]), matrix, steps=500)
        tensor([[0.4000, 0.6000]])
    """
    k = len(matrix)
    steps = max(_FEWEST_STEPS, min(_MOST_STEPS, 10_000 // k)) if steps is None else steps
    clean = torch.full_like(noisy, 1 / k)
    for _ in range(steps):
        clean = clean * ((noisy / (clean @ matrix).clamp_min(1e-300)) @ matrix.T)
    return clean


def _chunk_rows(num_classes: int) -> int:
    return max(1, _CHUNK_ELEMENTS // num_classes)
