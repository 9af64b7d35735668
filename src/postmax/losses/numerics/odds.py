"""Log-odds of a class, from which both log p and log(1 − p) follow with all digits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from postmax.losses.numerics.eager import is_batched, plain_eager


def log_p_and_rest_of(logits: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Return (log p, log(1 − p)), both (…, 1), of one class (…, 1) of each row of logits (…, C)."""
    odds = log_odds(logits, index)
    # The second derivative of torch's logsigmoid is computed by a subtraction, so it is not used here.
    likely = odds > 0
    far = torch.where(likely, -odds, odds)
    small = far.exp().log1p()
    larger, smaller = -small, far - small
    return torch.where(likely, larger, smaller), torch.where(likely, smaller, larger)


def log_odds(logits: Tensor, index: Tensor) -> Tensor:
    """Return log p/(1 − p), (…, 1): the logit of a class minus the logarithm of the sum of all others."""
    if not plain_eager():
        return logits.gather(-1, index) - log_sum(logits.scatter(-1, index, -torch.inf))
    odds: Tensor = _LogOdds.apply(logits, index)  # type: ignore[no-untyped-call]
    return odds


def log_sum(log_p: Tensor) -> Tensor:
    """Return the logarithm (…, 1) of a sum of probabilities.

    torch differentiates its logsumexp as exp(log p − result), which has few correct digits if both are far from 0.
    """
    largest = log_p.amax(-1, keepdim=True).detach().clamp_min(torch.finfo(log_p.dtype).min)
    return (log_p - largest).logsumexp(-1, keepdim=True) + largest


class _LogOdds(Function):
    """The log-odds. Their derivative is 1 at the class and minus the softmax of the others at all other classes.

    The exponentials of the other classes are kept for the backward pass. The first backward pass scales them in place
    and hands them on, because allocating a new tensor takes long: with a new tensor, a step of the focal loss for
    1024×1000 logits takes 1.3 times as long (one thread, forward and backward). Later passes compute them again.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, index: Tensor) -> Tensor:
        """Return the log-odds."""
        largest, exponentials, total = _others(logits, index)
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(logits, index)
            ctx.exponentials, ctx.total = exponentials, total
        return logits.gather(-1, index) - largest - total.log()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Return the derivative times the incoming gradient."""
        logits, index = ctx.saved_tensors
        exponentials, ctx.exponentials = ctx.exponentials, None
        if exponentials is not None and not torch.is_grad_enabled() and not is_batched(grad):
            return exponentials.mul_(-grad / ctx.total.clamp_min(1)).scatter_(-1, index, grad), None
        _, exponentials, total = _others(logits, index)
        return (exponentials * (-grad / total.clamp_min(1))).scatter(-1, index, grad), None


def _others(logits: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the largest of the other logits, the exponentials of all others relative to it, and their sum.

    The sum is at least 1, or 0 if all others are −∞.
    """
    others = logits.scatter(-1, index, -torch.inf)
    largest = others.amax(-1, keepdim=True).detach().clamp_min(torch.finfo(others.dtype).min)
    exponentials = others.sub_(largest).exp_()
    return largest, exponentials, exponentials.sum(-1, keepdim=True)
