"""What a label costs in relation to all labels: normalisation makes any cost symmetric.

Ma et al., Normalized loss functions for deep learning with noisy labels, ICML 2020.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from postmax.costs.base import Rows
from postmax.costs.stable import share, sum_of_others
from postmax.eager import eager


def normalised(rows: Rows, prices: Tensor) -> Tensor:
    """The price of each label asked for, divided by the sum of the prices (…, C) of all, which have the same sign."""
    found = None if rows.labels is None else eager(_Share, prices, rows.labels, 1.0)
    if found is not None:
        return found
    prices = _finite(prices)
    return share(rows.of(prices), sum_of_others(prices, rows.labels))


def remainder(rows: Rows, prices: Tensor) -> Tensor:
    """1 − `normalised`: the share of all other labels, without a subtraction."""
    found = None if rows.labels is None else eager(_Share, prices, rows.labels, -1.0)
    if found is not None:
        return found
    prices = _finite(prices)
    return share(sum_of_others(prices, rows.labels), rows.of(prices))


def _finite(prices: Tensor) -> Tensor:
    """The prices, but 1 for infinite ones and 0 beside them: their shares tend to that, with no gradient.

    A class with a logit of −∞ costs infinitely much.
    """
    infinite = prices.detach().isinf()
    return torch.where(infinite.any(-1, keepdim=True), infinite.to(prices.dtype), prices)


class _Share(Function):
    """part/total of a label, or for sign = −1 what is left of 1; the derivative is one number at it, one beside."""

    @staticmethod
    def forward(ctx: Any, prices: Tensor, index: Tensor, sign: float) -> Tensor:
        """The share (…, 1)."""
        total = prices.sum(-1, keepdim=True)
        ctx.infinite = None if total.isfinite().all() else prices.isinf().any(-1, keepdim=True)
        given = prices
        if ctx.infinite is not None:
            prices = _finite(prices)
            total = prices.sum(-1, keepdim=True)
        part = prices.gather(-1, index)
        rest = total - part
        most = (rest / total < 0.5).squeeze(-1)  # here the difference cancels
        if most.any():
            rest[most] = prices[most].scatter(-1, index[most], 0.0).sum(-1, keepdim=True)
            total = part + rest
        ctx.save_for_backward(given, index, part, rest, total)
        ctx.sign = sign
        return (part if sign > 0 else rest) / total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        """Shares are differentiated in both parts without subtracting one from the other."""
        prices, index, part, rest, total = ctx.saved_tensors
        if ctx.infinite is not None:
            grad = grad.masked_fill(ctx.infinite, 0.0)
        if torch.is_grad_enabled():  # for a second derivative
            prices = prices if ctx.infinite is None else _finite(prices)
            part = prices.gather(-1, index)
            rest = prices.scatter(-1, index, 0.0).sum(-1, keepdim=True)
            total = part + rest
        scale = ctx.sign * grad / total
        beside = (-scale * (part / total)).expand_as(prices)
        return beside.scatter(-1, index, scale * (rest / total)), None, None
