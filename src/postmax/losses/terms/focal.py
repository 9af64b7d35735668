"""The focal loss: cross-entropy with less weight on labels that are probable already.

Lin et al., Focal loss for dense object detection, ICCV 2017. Among robust losses it is a baseline, with γ = 0.5:
Ma et al., Normalized loss functions for deep learning with noisy labels, ICML 2020 (APL).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from postmax.losses.catalogue import register
from postmax.losses.facts import Facts, Preset
from postmax.losses.numerics.eager import differentiable_gradient, plain_eager
from postmax.losses.numerics.odds import log_p_and_rest_of
from postmax.losses.numerics.stable import Sure, log_p_and_rest
from postmax.losses.options import check_not_negative
from postmax.losses.term import LabelledLogits, Term


def focal(log_p: Tensor, log_rest: Tensor, gamma: float) -> Tensor:
    """Return −(1 − p)^γ log p from log p and log(1 − p).

    The derivative of a power of 1 − e^(log p) would be 0·∞ at p = 1.
    """
    if gamma == 0:  # log(1 − p) may be −∞, and 0·∞ is NaN
        return -log_p
    return -(gamma * log_rest).exp() * log_p


def focal_of_all(inputs: LabelledLogits, gamma: float) -> Tensor:
    """Return the focal loss (…, C) of every class."""
    if not plain_eager():
        return _plain(inputs.log_p, gamma)
    losses: Tensor = _FocalOfAll.apply(inputs.log_p, gamma)  # type: ignore[no-untyped-call]
    return losses


def _plain(log_p: Tensor, gamma: float) -> Tensor:
    return focal(*log_p_and_rest(log_p), gamma)


class _FocalOfAll(Function):
    """−(1 − p)^γ log p of every class, computed in few passes over memory."""

    @staticmethod
    def forward(ctx: Any, log_p: Tensor, gamma: float) -> Tensor:
        """Return the focal losses, and keep their slopes if a gradient is needed."""
        flat = log_p.reshape(-1, log_p.shape[-1])
        p = flat.exp()
        sure = Sure(flat)
        top_p, top_rest = (-sure.log_rest.exp()).log1p(), sure.log_rest
        sure.put(p, torch.zeros_like(top_rest))
        rest = 1 - p
        power = rest.pow(gamma)
        losses = (power * flat).neg_()
        sure.put(losses, focal(top_p, top_rest, gamma))
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(log_p)
            ctx.gamma, ctx.sure = gamma, sure
            # p·log p is 0 for a class with a logit of −∞.
            p.mul_(flat.clamp_min(torch.finfo(flat.dtype).min)).div_(rest).mul_(gamma).sub_(1).mul_(power)
            sure.put(p, torch.zeros_like(top_rest))
            ctx.slopes = p
            ctx.top_slope = (gamma * top_rest).exp() * (top_rest - top_p).exp() + gamma * focal(top_p, top_rest, gamma)
        return losses.view(log_p.shape)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Return the derivative (1 − p)^γ·(γ·p·log p/(1 − p) − 1); for a class with p > ½ it goes to all others."""
        if torch.is_grad_enabled():  # for a second derivative
            return differentiable_gradient(partial(_plain, gamma=ctx.gamma), ctx.saved_tensors[0], grad), None
        flat = grad.reshape(ctx.slopes.shape)
        return ctx.sure.spread(flat, ctx.top_slope, flat * ctx.slopes).view(grad.shape), None


@dataclass(frozen=True)
class Focal(Term):
    """−(1 − p)^γ log p of the label's probability p.

    The derivative is that of the whole product. The code published with APL differentiates as if (1 − p)^γ were a
    constant, which is another method.

    Args:
        gamma: At least 0. With 0 the loss is cross-entropy; APL uses 0.5, and Lin et al. use 2.
    """

    gamma: float = 0.5

    def __post_init__(self) -> None:
        check_not_negative(gamma=self.gamma)

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        if inputs.labels is None:
            return focal_of_all(inputs, self.gamma)
        return focal(*log_p_and_rest_of(inputs.logits, inputs.labels), self.gamma)


register(
    "focal",
    Focal,
    "focal loss −(1 − p)^γ log p",
    Facts(symmetric=False, bounded=False, role="active", source="Lin et al. 2017"),
    presets={
        name: Preset({"gamma": 0.5}, "APL and ANL code (there without its derivative)")
        for name in ("cifar10", "cifar100")
    },
    aliases=("fl", "focal-loss"),
)
