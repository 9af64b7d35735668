"""Derivatives and inverses of functions that act on each element of a tensor."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

ElementwiseFunction = Callable[[Tensor], Tensor]


def elementwise_derivative(function: ElementwiseFunction) -> ElementwiseFunction:
    """Return the derivative of an elementwise function. It can be differentiated, compiled and used under vmap."""
    gradient: ElementwiseFunction = torch.func.grad(lambda x: function(x).sum())
    return gradient


def invert_increasing(function: ElementwiseFunction, value: Tensor) -> Tensor:
    """Return the s in [−745, 745] with function(s) = value, for an increasing function. It has no gradient.

    The bisection runs in float64 and halves the bracket until it no longer moves, so the result is as exact as float64
    allows.
    """
    target = value.detach().double()
    low = torch.full_like(target, -745.0)
    high = torch.full_like(target, 745.0)
    while True:
        middle = 0.5 * (low + high)
        if bool(((middle == low) | (middle == high)).all()):
            break
        below = function(middle) < target
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return (0.5 * (low + high)).to(value.dtype)
