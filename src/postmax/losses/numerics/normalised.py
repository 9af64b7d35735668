"""The loss of a label in relation to the losses of all labels. Normalisation makes every loss symmetric.

Ma et al., Normalized loss functions for deep learning with noisy labels, ICML 2020.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from postmax.losses.numerics.eager import plain_eager
from postmax.losses.numerics.stable import share, sum_of_others
from postmax.losses.term import LabelledLogits


def normalised(inputs: LabelledLogits, losses: Tensor) -> Tensor:
    """Return the loss of each requested label, divided by the sum of the losses (…, C) of all labels.

    All losses must have the same sign.
    """
    if inputs.labels is not None and plain_eager():
        return _share(losses, inputs.labels, 1.0)
    losses = _finite(losses)
    return share(inputs.pick(losses), sum_of_others(losses, inputs.labels))


def remainder(inputs: LabelledLogits, losses: Tensor) -> Tensor:
    """Return 1 − `normalised`, which is the share of all other labels, computed without a subtraction."""
    if inputs.labels is not None and plain_eager():
        return _share(losses, inputs.labels, -1.0)
    losses = _finite(losses)
    return share(sum_of_others(losses, inputs.labels), inputs.pick(losses))


def _share(losses: Tensor, index: Tensor, sign: float) -> Tensor:
    shares: Tensor = _Share.apply(losses, index, sign)  # type: ignore[no-untyped-call]
    return shares


def _finite(losses: Tensor) -> Tensor:
    """Return the losses, but in rows with infinite losses 1 for these and 0 for the others.

    The shares tend to those values, without a gradient. The loss of a class with a logit of −∞ is infinite.
    """
    infinite = losses.detach().isinf()
    return torch.where(infinite.any(-1, keepdim=True), infinite.to(losses.dtype), losses)


class _Share(Function):
    """The share part/total of a label, or for sign = −1 the rest of 1.

    Its derivative has one value at the label and one other value at all other classes.
    """

    @staticmethod
    def forward(ctx: Any, losses: Tensor, index: Tensor, sign: float) -> Tensor:
        """Return the share (…, 1)."""
        total = losses.sum(-1, keepdim=True)
        ctx.infinite = None if total.isfinite().all() else losses.isinf().any(-1, keepdim=True)
        given = losses
        if ctx.infinite is not None:
            losses = _finite(losses)
            total = losses.sum(-1, keepdim=True)
        part = losses.gather(-1, index)
        rest = total - part
        most = (rest / total < 0.5).squeeze(-1)  # here the difference would lose digits
        if most.any():
            rest[most] = losses[most].scatter(-1, index[most], 0.0).sum(-1, keepdim=True)
            total = part + rest
        ctx.save_for_backward(given, index, part, rest, total)
        ctx.sign = sign
        return (part if sign > 0 else rest) / total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        """Return the derivative, computed without subtracting one part from the other."""
        losses, index, part, rest, total = ctx.saved_tensors
        if ctx.infinite is not None:
            grad = grad.masked_fill(ctx.infinite, 0.0)
        if torch.is_grad_enabled():  # for a second derivative
            losses = losses if ctx.infinite is None else _finite(losses)
            part = losses.gather(-1, index)
            rest = losses.scatter(-1, index, 0.0).sum(-1, keepdim=True)
            total = part + rest
        scale = ctx.sign * grad / total
        beside = (-scale * (part / total)).expand_as(losses)
        return beside.scatter(-1, index, scale * (rest / total)), None, None
