"""What a label costs in relation to all labels: normalisation makes any cost symmetric.

Ma et al., Normalized loss functions for deep learning with noisy labels, ICML 2020.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from postmax.costs.base import Rows
from postmax.costs.eager import eager
from postmax.costs.stable import share


def normalised(rows: Rows, prices: Tensor) -> Tensor:
    """The price of each label asked for, divided by the sum of the prices (…, C) of all, which have the same sign."""
    found = None if rows.labels is None else eager(_Share, prices, rows.labels, 1.0)
    return share(rows.of(prices), _others(rows, prices)) if found is None else found


def remainder(rows: Rows, prices: Tensor) -> Tensor:
    """1 − `normalised`: the share of all other labels, without a subtraction."""
    found = None if rows.labels is None else eager(_Share, prices, rows.labels, -1.0)
    return share(_others(rows, prices), rows.of(prices)) if found is None else found


def _others(rows: Rows, prices: Tensor) -> Tensor:
    """(…, m) the sum of the prices of all labels but the one asked for, which may be larger by far."""
    if rows.labels is not None:
        return prices.scatter(-1, rows.labels, 0.0).sum(-1, keepdim=True)
    total = prices.sum(-1, keepdim=True)
    most = prices / total > 0.5  # of one label at most; total − price would cancel there, and nowhere else
    return torch.where(most, prices.masked_fill(most, 0.0).sum(-1, keepdim=True), total - prices)


class _Share(Function):
    """part/total of a label, or for sign = −1 what is left of 1; the derivative is one number at it, one beside."""

    @staticmethod
    def forward(ctx: Any, prices: Tensor, index: Tensor, sign: float) -> Tensor:
        """The share (…, 1)."""
        part, total = prices.gather(-1, index), prices.sum(-1, keepdim=True)
        rest = total - part
        most = (rest / total < 0.5).squeeze(-1)  # here the difference cancels
        if most.any():
            rest[most] = prices[most].scatter(-1, index[most], 0.0).sum(-1, keepdim=True)
            total = part + rest
        ctx.save_for_backward(prices, index, part, rest, total)
        ctx.sign = sign
        return (part if sign > 0 else rest) / total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        """Shares are differentiated in both parts without subtracting one from the other."""
        prices, index, part, rest, total = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative
            part = prices.gather(-1, index)
            rest = prices.scatter(-1, index, 0.0).sum(-1, keepdim=True)
            total = part + rest
        scale = ctx.sign * grad / total
        beside = (-scale * (part / total)).expand_as(prices)
        return beside.scatter(-1, index, scale * (rest / total)), None, None
