"""The focal loss: cross-entropy that cares less about labels which are probable already.

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

from postmax.costs.base import Cost, Rows
from postmax.costs.catalogue import Facts, Preset, register
from postmax.costs.odds import log_p_and_rest_of
from postmax.costs.stable import Sure, log_p_and_rest
from postmax.eager import eager, of_ordinary_operations
from postmax.errors import InputError


def focal(log_p: Tensor, log_rest: Tensor, gamma: float) -> Tensor:
    """−(1 − p)^γ log p from log p and log(1 − p); a power of 1 − e^log p would have a derivative of 0·∞ at p = 1."""
    if gamma == 0:  # where log(1 − p) may be −∞, and 0·∞ is not 0
        return -log_p
    return -(gamma * log_rest).exp() * log_p


def focal_of_all(rows: Rows, gamma: float) -> Tensor:
    """(…, C) the focal loss of every class."""
    found = eager(_FocalOfAll, rows.log_p, gamma)
    return _plain(rows.log_p, gamma) if found is None else found


def _plain(log_p: Tensor, gamma: float) -> Tensor:
    return focal(*log_p_and_rest(log_p), gamma)


class _FocalOfAll(Function):
    """−(1 − p)^γ log p of every class in few passes over memory."""

    @staticmethod
    def forward(ctx: Any, log_p: Tensor, gamma: float) -> Tensor:
        """The focal losses, and their slopes where these will be asked for."""
        flat = log_p.reshape(-1, log_p.shape[-1])
        p = flat.exp()
        sure = Sure(flat)
        top_p, top_rest = (-sure.log_rest.exp()).log1p(), sure.log_rest
        sure.put(p, torch.zeros_like(top_rest))
        rest = 1 - p
        power = rest.pow(gamma)
        prices = (power * flat).neg_()
        sure.put(prices, focal(top_p, top_rest, gamma))
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(log_p)
            ctx.gamma, ctx.sure = gamma, sure
            # p·log p is 0 for a class with a logit of −∞.
            p.mul_(flat.clamp_min(torch.finfo(flat.dtype).min)).div_(rest).mul_(gamma).sub_(1).mul_(power)
            sure.put(p, torch.zeros_like(top_rest))
            ctx.slopes = p
            ctx.top_slope = (gamma * top_rest).exp() * (top_rest - top_p).exp() + gamma * focal(top_p, top_rest, gamma)
        return prices.view(log_p.shape)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """(1 − p)^γ·(γ·p·log p/(1 − p) − 1); that of a class of p > ½ is passed on to all others."""
        if torch.is_grad_enabled():  # for a second derivative
            return of_ordinary_operations(partial(_plain, gamma=ctx.gamma), ctx.saved_tensors[0], grad), None
        flat = grad.reshape(ctx.slopes.shape)
        return ctx.sure.spread(flat, ctx.top_slope, flat * ctx.slopes).view(grad.shape), None


def check_gamma(gamma: object) -> None:
    """Refuse what is not a number ≥ 0."""
    if isinstance(gamma, bool) or not isinstance(gamma, int | float) or not 0 <= gamma < torch.inf:
        raise InputError(f"gamma must be a number ≥ 0, got {gamma!r}.")


@dataclass(frozen=True)
class Focal(Cost):
    """−(1 − p)^γ log p of the label's probability p.

    The derivative is that of the whole product. The code published with APL takes (1 − p)^γ for a constant when it
    differentiates, which is another method.

    Args:
        gamma: At least 0, where it is cross-entropy; 0.5 is APL's, Lin et al. use 2.
    """

    gamma: float = 0.5

    def __post_init__(self) -> None:
        check_gamma(self.gamma)

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        if rows.labels is None:
            return focal_of_all(rows, self.gamma)
        return focal(*log_p_and_rest_of(rows.logits, rows.labels), self.gamma)


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
