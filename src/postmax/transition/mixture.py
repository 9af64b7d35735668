"""Mixing probabilities without leaving the logarithm."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.transition.constant import Constant


class LogMixture:
    """log(Pᵀp) from log p (classes last), exact in value and gradient for any logits.

    A column of P without zeros cannot underflow, because the largest probability reaches it: a matrix product does.
    A column with zeros can (think of P = I and a probability of e^−10000): its few entries are summed in the logarithm.
    A column with zeros and more than 16 other entries would need too much memory for that; it is multiplied too, and a
    mixture below the smallest normal number counts as that number.

    Example:
        >>> mix = LogMixture(torch.tensor([[0.9, 0.1], [0.0, 1.0]]))
        >>> mix(torch.tensor([-10000.0, 0.0]))
        tensor([-10000.1055,      0.0000])
    """

    _REACHES = 1e-20
    _FEW = 16

    def __init__(self, matrix: Tensor) -> None:
        reached = matrix >= self._REACHES
        multiplied = reached.all(0) | (reached.sum(0) > self._FEW)
        dense, sparse = multiplied.nonzero().flatten(), (~multiplied).nonzero().flatten()
        support = int(reached[:, sparse].sum(0).max()) if len(sparse) else 0
        weight, rows = matrix[:, sparse].topk(support, dim=0)
        self._dense, self._rows = Constant(matrix[:, dense]), Constant(rows)
        self._log_weight = Constant(weight.log())
        self._order = Constant(torch.cat([dense, sparse]).argsort())
        self._has_dense, self._has_sparse = len(dense) > 0, len(sparse) > 0

    def __call__(self, log_p: Tensor) -> Tensor:
        """log(Pᵀp)."""
        parts = []
        if self._has_dense:
            mixed = log_p.exp() @ self._dense.like(log_p)
            parts.append(mixed.clamp_min(torch.finfo(log_p.dtype).tiny).log())
        if self._has_sparse:
            terms = log_p[..., self._rows.like(log_p)] + self._log_weight.like(log_p)
            parts.append(terms.logsumexp(-2))
        if len(parts) == 1:
            return parts[0]
        return torch.cat(parts, -1)[..., self._order.like(log_p)]
