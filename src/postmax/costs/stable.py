"""Functions of log-probabilities whose automatic derivatives are as accurate as their values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from postmax.costs.odds import log_p_and_rest_of, log_sum
from postmax.eager import eager, of_ordinary_operations

LARGEST_LOG = 78.0  # e^78 < 1e34: powers of options beyond it leave too little of the range of float32


def expm1(x: Tensor) -> Tensor:
    """e^x − 1.

    torch differentiates its own as result + 1, which is 0 instead of e^x as soon as the result rounds to −1.
    """
    return torch.where(x > -0.5, x.expm1(), x.exp() - 1)


def complement(log_p: Tensor) -> Tensor:
    """1 − p."""
    return -expm1(log_p)


def log_rest(log_p: Tensor) -> Tensor:
    """log(1 − p) of every class, (…, C), from the log-probabilities of all; see `log_p_and_rest`."""
    found = eager(_LogRest, log_p)
    return log_p_and_rest(log_p)[1] if found is None else found


def log_p_and_rest(log_p: Tensor) -> tuple[Tensor, Tensor]:
    """(log p, log(1 − p)) of every class, both to all digits: log p = −1e-30 does not round to 0 and stay there.

    The most probable class of a row is the only one whose p can be above ½; it is computed from all the others.
    """
    top = log_p.argmax(-1, keepdim=True)
    top_p, top_rest = log_p_and_rest_of(log_p, top)
    rest = (-log_p.scatter(-1, top, -1.0).exp()).log1p()
    return log_p.scatter(-1, top, top_p), rest.scatter(-1, top, top_rest)


def sum_of_others(values: Tensor, labels: Tensor | None) -> Tensor:
    """(…, m) the sum of the values (…, C) of all classes but the one asked for, which may be larger by far.

    Args:
        values: All of the same sign.
        labels: (…, 1), or None to ask for every class.
    """
    if labels is not None:
        return values.scatter(-1, labels, 0.0).sum(-1, keepdim=True)
    total = values.sum(-1, keepdim=True)
    # Of one class at most; total − value would cancel there, and nowhere else. An infinite value is most of the total.
    most = (values / total > 0.5) | values.isinf()
    return torch.where(most, values.masked_fill(most, 0.0).sum(-1, keepdim=True), total - values)


def share(part: Tensor, rest: Tensor) -> Tensor:
    """part/(part + rest) of two that have the same sign and are not both zero.

    The derivative of the plain quotient subtracts part/sum² from 1/sum, which are almost equal if the rest is small.
    """
    smaller = part.abs() < rest.abs()
    x = torch.where(smaller, part, rest) / torch.where(smaller, rest, part)
    return torch.where(smaller, x, 1.0) / (1 + x)


class Sure:
    """The rows with a class of p > ½, whose 1 − p has to come from all other classes.

    Attributes:
        rows: (n) which of the rows.
        top: (n, 1) the class.
        log_rest: (n, 1) its log(1 − p).
        shares: (n, C) what each other class has of 1 − p, which is the derivative of log_rest.
    """

    def __init__(self, log_p: Tensor) -> None:
        self.rows = (log_p.amax(-1) > -0.69).nonzero().squeeze(-1)
        sure = log_p[self.rows]
        self.top = sure.argmax(-1, keepdim=True)
        others = sure.scatter_(-1, self.top, -torch.inf)
        self.log_rest = log_sum(others)
        self.shares = torch.where(self.log_rest.isinf(), 0.0, others.softmax(-1))

    def put(self, values: Tensor, at_top: Tensor) -> None:
        """Write what belongs to the classes of p > ½ into values (N, C)."""
        if len(self.rows):
            values[self.rows] = values[self.rows].scatter_(-1, self.top, at_top)

    def spread(self, grad: Tensor, slope: Tensor, gradient: Tensor) -> Tensor:
        """The gradient (N, C) with that of the classes of p > ½ passed on to the others, by slopes of log_rest."""
        if not len(self.rows):
            return gradient
        at_top = grad[self.rows].gather(-1, self.top)
        return gradient.index_add(0, self.rows, self.shares * (at_top * slope))


class _LogRest(Function):
    """log(1 − p) of every class in few passes over memory."""

    @staticmethod
    def forward(ctx: Any, log_p: Tensor) -> Tensor:
        """The logarithms, and their slopes where these will be asked for."""
        flat = log_p.reshape(-1, log_p.shape[-1])
        p = flat.exp()
        sure = Sure(flat)
        sure.put(p, torch.zeros_like(sure.log_rest))
        rest = p.neg().log1p_()
        sure.put(rest, sure.log_rest)
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(log_p)
            ctx.sure, ctx.slopes = sure, p.div_(p - 1)
        return rest.view(log_p.shape)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """−p/(1 − p), and for a class of p > ½ what each of the others has of 1 − p."""
        if torch.is_grad_enabled():  # for a second derivative
            return of_ordinary_operations(lambda log_p: log_p_and_rest(log_p)[1], ctx.saved_tensors[0], grad)
        flat = grad.reshape(ctx.slopes.shape)
        sure: Sure = ctx.sure
        return sure.spread(flat, torch.ones_like(sure.log_rest), flat * ctx.slopes).view(grad.shape)
