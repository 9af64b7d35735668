"""Mix probabilities in logarithms, so that very small ones do not underflow."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.transition.constant import Constant


class LogMixture:
    """A function that returns log(Pᵀp) for log p (classes last), accurate in value and gradient for any logits.

    There are three kinds of columns of P:

    * A column without zeros cannot underflow, because the largest probability contributes to it. It is a matrix
      product.
    * A column with zeros can underflow (for example P = I and a probability of e^−10000). If it has at most 16 entries
      that are not zero, they are summed in logarithms.
    * For a column with more entries that would need too much memory. There the most probable class is added separately,
      so that a column to which it does not contribute is computed relative to the second most probable class. Numbers
      that are smaller than this by more than the range of the dtype count as the smallest number.

    Example:
        >>> mix = LogMixture(torch.tensor([[0.9, 0.1], [0.0, 1.0]]))
        >>> mix(torch.tensor([-10000.0, 0.0]))
        tensor([-10000.1055,      0.0000])
    """

    _REACHES = 1e-20
    _FEW = 16

    def __init__(self, matrix: Tensor) -> None:
        reached = matrix >= self._REACHES
        count = reached.sum(0)
        full = count == len(matrix)
        dense, sparse, rest = (
            chosen.nonzero().flatten() for chosen in (full, ~full & (count <= self._FEW), ~full & (count > self._FEW))
        )
        support = int(count[sparse].max()) if len(sparse) else 0
        weight, rows = matrix[:, sparse].topk(support, dim=0)
        self._dense, self._rows, self._log_weight = Constant(matrix[:, dense]), Constant(rows), Constant(weight.log())
        self._rest, self._log_rest = Constant(matrix[:, rest]), Constant(matrix[:, rest].log())
        self._parts = [
            mix
            for columns, mix in ((dense, self._multiplied), (sparse, self._summed), (rest, self._top_apart))
            if len(columns)
        ]
        self._order = Constant(torch.cat([dense, sparse, rest]).argsort())

    def __call__(self, log_p: Tensor) -> Tensor:
        """Return log(Pᵀp)."""
        parts = [mix(log_p) for mix in self._parts]
        return parts[0] if len(parts) == 1 else torch.cat(parts, -1)[..., self._order.like(log_p)]

    def _multiplied(self, log_p: Tensor) -> Tensor:
        return _log(log_p.exp() @ self._dense.like(log_p))

    def _summed(self, log_p: Tensor) -> Tensor:
        terms = log_p[..., self._rows.like(log_p)] + self._log_weight.like(log_p)
        # If all classes of a column are masked, the result is −inf, and its gradient is zero instead of NaN.
        nothing = terms.detach().amax(-2, keepdim=True).isneginf()
        mixed = terms.masked_fill(nothing, 0.0).logsumexp(-2)
        return mixed.masked_fill(nothing.squeeze(-2), -torch.inf)

    def _top_apart(self, log_p: Tensor) -> Tensor:
        top = log_p.argmax(-1, keepdim=True)
        others = log_p.scatter(-1, top, -torch.inf)
        largest = others.detach().amax(-1, keepdim=True).clamp_min(torch.finfo(log_p.dtype).min)
        of_others = _log((others - largest).exp() @ self._rest.like(log_p)) + largest
        of_top = self._log_rest.like(log_p)[top.squeeze(-1)] + log_p.gather(-1, top)
        return torch.logaddexp(of_top, of_others)


def _log(mixed: Tensor) -> Tensor:
    return mixed.clamp_min(torch.finfo(mixed.dtype).tiny).log()
