"""Muon: gradient descent for convolution filters with steps that are equally long in all directions (Jordan, 2024)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD

IS_FILTERS = "filters"
MOMENTUM = 0.6
# Three steps of a polynomial bring singular values from 0.1 … 1 to about 1. It need not be exact.
_STEPS, _LINEAR, _CUBIC, _QUINTIC = 3, 3.4445, -4.7750, 2.0315
# A layer of zeros stays one, because the factor that scales it is finite.
_LEAST_NORM = 1e-30


class Muon(SGD):
    """SGD that moves filters, which are the parameters in the groups marked `IS_FILTERS`, by Muon's rule.

    The matrix of a layer has one row for each of its n filters. Its gradient, with Nesterov momentum, is replaced by
    the nearest matrix with orthonormal rows. Before each step the filters are scaled to the norm √n: a layer in front
    of batch normalisation gives the same outputs then. So the learning rate of the group says by which share filters
    turn, and the scale of the loss does not matter.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one step; as in torch, a closure computes the gradients first."""
        value = None
        if closure is not None:
            with torch.enable_grad():
                value = closure()
        for group in self.param_groups:
            if group.get(IS_FILTERS):
                for filters in group["params"]:
                    if filters.grad is not None:
                        self._prepare(filters, filters.grad)
        super().step()
        return value

    def _prepare(self, filters: Tensor, gradient: Tensor) -> None:
        """Scale the filters and replace their gradient. What is left to do is a plain step of SGD."""
        state = self.state[filters]
        if "sum" not in state:
            state["sum"] = torch.zeros_like(filters)
        state["sum"].mul_(MOMENTUM).add_(gradient)
        ahead = gradient.add(state["sum"], alpha=MOMENTUM)
        filters.mul_(len(filters) ** 0.5 / filters.norm().clamp(min=_LEAST_NORM))
        gradient.copy_(orthonormal(ahead.flatten(1)).view_as(filters))


def orthonormal(matrix: Tensor) -> Tensor:
    """Return about the nearest matrix with orthonormal rows, or columns if there are more rows than columns.

    Each step of the iteration is X ← (a + b·XXᵀ + c·(XXᵀ)²)·X. All these factors are polynomials of the first XXᵀ, so
    they are multiplied as small square matrices, and X is used twice only.

    Example:
        >>> orthonormal(torch.tensor([[3.0, 0.0, 0.0], [0.0, 0.0, -2.0]])).round()
        tensor([[ 1.,  0.,  0.],
                [ 0.,  0., -1.]])
    """
    if len(matrix) > matrix.shape[1]:
        return orthonormal(matrix.T).T
    # The norm may be zero or overflow a square, so the largest entry is divided out first.
    start = matrix / matrix.abs().max().clamp(min=torch.finfo(matrix.dtype).tiny)
    start = start / start.norm().clamp(min=1.0)
    product = start @ start.T
    factor: Tensor = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    for _ in range(_STEPS):
        square = product @ product
        step = _CUBIC * product + _QUINTIC * square
        step.diagonal().add_(_LINEAR)
        factor = step @ factor
        product = step @ product @ step
    nearest: Tensor = factor @ start
    return nearest
