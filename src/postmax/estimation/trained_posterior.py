"""The posterior of a network that is trained together with a transition matrix, and the matrix that fits it best."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from postmax.estimation.counts import count_pairs, keep_unseen, normalise_rows, prior_behind
from postmax.estimation.estimator import RowTensors, Solution
from postmax.estimation.evidence import Evidence
from postmax.estimation.network import Copies, train

_STEPS, _TOLERANCE = 500, 1e-8
_CHUNK_ELEMENTS = 2**22
_ROWS_AT_ONCE = 8192
# A zero of the starting matrix would stay zero in all steps.
_SPREAD = 0.05


def posterior_after(
    loss: Callable[[Tensor, Tensor], Tensor], extra: Iterable[nn.Parameter], evidence: Evidence, method: str
) -> Tensor:
    """Return the posterior (N, K), float64, of a network that is trained on all rows.

    Args:
        loss: A function of logits (B, K) and labels (B,).
        extra: Parameters of the loss that are trained with the network, such as those of a matrix.
        evidence: The labels and features.
        method: What the estimator is called, for the message if there are no features.
    """
    features = evidence.require_features(method)
    network = Copies(1, features, evidence.num_classes, torch.Generator().manual_seed(evidence.seed))
    train(network, features, evidence.labels, torch.arange(len(features))[None], loss, extra=extra)
    with torch.no_grad():
        chunks = [network(rows[None])[0].double().softmax(1) for rows in features.split(_ROWS_AT_ONCE)]
    return torch.cat(chunks)


def log_mixed(log_p: Tensor, matrix: Tensor, column: Tensor) -> Tensor:
    """Return log(pM)[column] of each row, (N,), from the logarithms of p. It is finite also where the sum rounds to 0.

    Example:
        >>> log_mixed(torch.tensor([[-1e4, 0.0]]), torch.eye(2), torch.tensor([1])).item()
        0.0
    """
    return (log_p + log_entries(matrix).T[column]).logsumexp(1)


def log_entries(matrix: Tensor) -> Tensor:
    """Return the logarithms of the entries of a matrix; finite also where an entry is 0."""
    return matrix.clamp_min(torch.finfo(matrix.dtype).tiny).log()


def solution_for(rows: RowTensors, num_classes: int, start: Solution | None = None) -> Solution:
    """Return the matrix T that maximises Σ log(pT)[label] for given posteriors p.

    The maximum is the only one, because the logarithm of a linear function is concave. Expectation–maximisation finds
    it without a step size.

    Args:
        rows: Posteriors (N, K) and labels (N,).
        num_classes: K.
        start: The solution for nearly the same rows.

    Example:
        >>> rows = torch.eye(2).double().repeat(4, 1), torch.tensor([0, 1, 0, 1, 0, 1, 1, 1])
        >>> solution_for(rows, 2).matrix
        tensor([[0.7500, 0.2500],
                [0.0000, 1.0000]], dtype=torch.float64)
    """
    posterior, labels = rows
    if start is None:
        matrix = normalise_rows(count_pairs(posterior.argmax(1), labels, num_classes) + 1 / num_classes)
    else:
        matrix = (1 - _SPREAD) * start.matrix + _SPREAD / num_classes
    last = -torch.inf
    for _ in range(_STEPS):
        matrix, fit = _step(matrix, posterior, labels)
        if fit - last < _TOLERANCE:
            break
        last = fit
    matrix = keep_unseen(matrix, labels)
    return Solution(matrix, prior_behind(matrix, labels))


def _step(matrix: Tensor, posterior: Tensor, labels: Tensor) -> tuple[Tensor, float]:
    """Return the next matrix, and the mean log-likelihood of the present one. Chunks save memory for many classes."""
    moved, fit = torch.zeros_like(matrix), 0.0
    size = _CHUNK_ELEMENTS // len(matrix) + 1
    for p, y in zip(posterior.split(size), labels.split(size), strict=True):
        joint = p * matrix.T[y]
        total = joint.sum(1, keepdim=True).clamp_min(1e-300)
        fit += float(total.log().sum())
        moved.index_add_(1, y, (joint / total).T)
    return normalise_rows(moved), fit / len(labels)
