"""Log-odds of a class, which know both log p and log(1 − p) to all digits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from postmax.eager import eager


def log_p_and_rest_of(logits: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """(log p, log(1 − p)), both (…, 1), of one class (…, 1) of each row of logits (…, C)."""
    odds = log_odds(logits, index)
    # logsigmoid would do, but its second derivative is computed by subtraction.
    likely = odds > 0
    far = torch.where(likely, -odds, odds)
    small = far.exp().log1p()
    larger, smaller = -small, far - small
    return torch.where(likely, larger, smaller), torch.where(likely, smaller, larger)


def log_odds(logits: Tensor, index: Tensor) -> Tensor:
    """(…, 1) log p/(1 − p): the logit of a class minus the logarithm of the sum of all others."""
    odds = eager(_LogOdds, logits, index)
    if odds is None:
        odds = logits.gather(-1, index) - log_sum(logits.scatter(-1, index, -torch.inf))
    return odds


def log_sum(log_p: Tensor) -> Tensor:
    """(…, 1) the logarithm of a sum of probabilities.

    torch differentiates its own as exp(log p − result), which has few digits left where both are far from 0.
    """
    largest = log_p.amax(-1, keepdim=True).detach().clamp_min(torch.finfo(log_p.dtype).min)
    return (log_p - largest).logsumexp(-1, keepdim=True) + largest


class _LogOdds(Function):
    """The derivative is 1 at the class and minus the softmax of the others: what is kept is their exponentials.

    The first backward scales them in place and gives them away, because fresh memory is what costs most.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, index: Tensor) -> Tensor:
        """The log-odds."""
        largest, exponentials, total = _others(logits, index)
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(logits, index)
            ctx.exponentials, ctx.total = exponentials, total
        return logits.gather(-1, index) - largest - total.log()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """The derivative times the incoming gradient; computed anew for a second pass or a second derivative."""
        logits, index = ctx.saved_tensors
        exponentials, ctx.exponentials = ctx.exponentials, None
        if exponentials is not None and not torch.is_grad_enabled():
            try:
                return exponentials.mul_(-grad / ctx.total.clamp_min(1)).scatter_(-1, index, grad), None
            except RuntimeError:  # many incoming gradients at once, batched by vmap
                pass
        _, exponentials, total = _others(logits, index)
        return (exponentials * (-grad / total.clamp_min(1))).scatter(-1, index, grad), None


def _others(logits: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The largest of the other logits, e to the power of how much less each of them is, and the sum of these.

    The sum is at least 1, or 0 if all others are −∞.
    """
    others = logits.scatter(-1, index, -torch.inf)
    largest = others.amax(-1, keepdim=True).detach().clamp_min(torch.finfo(others.dtype).min)
    exponentials = others.sub_(largest).exp_()
    return largest, exponentials, exponentials.sum(-1, keepdim=True)
