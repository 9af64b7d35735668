"""The simplex: nearest probabilities, and mixing probabilities without leaving the logarithm."""

from __future__ import annotations

import torch
from torch import Tensor


def project_onto_simplex(values: Tensor) -> Tensor:
    """The nearest probability vector (Euclidean), over the last dimension.

    The projection is `max(v − τ, 0)` with the τ that makes the sum one, so it keeps the order of the entries.

    Example:
        >>> project_onto_simplex(torch.tensor([1.25, -0.25]))
        tensor([1., 0.])
        >>> project_onto_simplex(torch.tensor([0.5, 0.4, 0.4]))
        tensor([0.4000, 0.3000, 0.3000])
    """
    ranked = values.sort(-1, descending=True).values
    count = torch.arange(1, values.shape[-1] + 1, device=values.device, dtype=values.dtype)
    threshold = (ranked.cumsum(-1) - 1) / count
    support = (ranked > threshold).sum(-1, keepdim=True).clamp_min(1)
    return (values - threshold.gather(-1, support - 1)).clamp_min(0)


class LogMixture:
    """log(Pᵀp) from log p (classes last), exact in value and gradient for any logits.

    A column of P without zeros cannot underflow, because the largest probability reaches it: a matrix product does.
    A column with zeros can (think of P = I and a probability of e^−10000): its few entries are summed in the logarithm.

    Example:
        >>> mix = LogMixture(torch.tensor([[0.9, 0.1], [0.0, 1.0]]))
        >>> mix(torch.tensor([-10000.0, 0.0]))
        tensor([-10000.1055,      0.0000])
    """

    _REACHES = 1e-20

    def __init__(self, matrix: Tensor) -> None:
        reached = matrix >= self._REACHES
        full = reached.all(0)
        dense, sparse = full.nonzero().flatten(), (~full).nonzero().flatten()
        self._dense = matrix[:, dense]
        support = int(reached[:, sparse].sum(0).max()) if len(sparse) else 0
        weight, self._rows = matrix[:, sparse].topk(support, dim=0)
        self._log_weight = weight.log()
        self._order = torch.cat([dense, sparse]).argsort()

    def __call__(self, log_p: Tensor) -> Tensor:
        """log(Pᵀp)."""
        parts = []
        if self._dense.shape[1]:
            parts.append((log_p.exp() @ self._dense.to(log_p)).log())
        if self._rows.numel():
            terms = log_p[..., self._rows.to(log_p.device)] + self._log_weight.to(log_p)
            parts.append(terms.logsumexp(-2))
        if len(parts) == 1:
            return parts[0]
        return torch.cat(parts, -1)[..., self._order.to(log_p.device)]
