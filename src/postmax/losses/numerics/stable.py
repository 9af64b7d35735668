"""Functions of log-probabilities whose automatic derivatives are as accurate as their values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from postmax.losses.numerics.eager import differentiable_gradient, plain_eager
from postmax.losses.numerics.odds import log_p_and_rest_of, log_sum

LARGEST_LOG = 78.0  # e^78 < 1e34; larger powers of options would leave too little of the range of float32


def expm1(x: Tensor) -> Tensor:
    """Return e^x − 1.

    torch differentiates its own expm1 as result + 1, which is 0 and not e^x as soon as the result rounds to −1.
    """
    return torch.where(x > -0.5, x.expm1(), x.exp() - 1)


def complement(log_p: Tensor) -> Tensor:
    """Return 1 − p."""
    return -expm1(log_p)


def log_rest(log_p: Tensor) -> Tensor:
    """Return log(1 − p) of every class, (…, C), from the log-probabilities of all classes; see `log_p_and_rest`."""
    if not plain_eager():
        return log_p_and_rest(log_p)[1]
    rest: Tensor = _LogRest.apply(log_p)  # type: ignore[no-untyped-call]
    return rest


def log_p_and_rest(log_p: Tensor) -> tuple[Tensor, Tensor]:
    """Return (log p, log(1 − p)) of every class, both with all digits: log p = −1e-30 does not round to 0.

    The most probable class of a row is the only one whose p can be above ½. It is computed from all the others.
    """
    top = log_p.argmax(-1, keepdim=True)
    top_p, top_rest = log_p_and_rest_of(log_p, top)
    rest = (-log_p.scatter(-1, top, -1.0).exp()).log1p()
    return log_p.scatter(-1, top, top_p), rest.scatter(-1, top, top_rest)


def sum_of_others(values: Tensor, labels: Tensor | None) -> Tensor:
    """Return the sum (…, m) of the values (…, C) of all classes except the requested one.

    The value of the requested class may be far larger than the sum of the others.

    Args:
        values: Values that all have the same sign.
        labels: The requested class (…, 1); None requests every class.
    """
    if labels is not None:
        return values.scatter(-1, labels, 0.0).sum(-1, keepdim=True)
    total = values.sum(-1, keepdim=True)
    # At most one class has more than half of the total. There, and only there, total − value would lose digits. An
    # infinite value counts as more than half.
    most = (values / total > 0.5) | values.isinf()
    return torch.where(most, values.masked_fill(most, 0.0).sum(-1, keepdim=True), total - values)


def share(part: Tensor, rest: Tensor) -> Tensor:
    """Return part/(part + rest) of two values that have the same sign and are not both zero.

    The derivative of the plain quotient subtracts part/sum² from 1/sum. Both are almost equal if the rest is small.
    """
    smaller = part.abs() < rest.abs()
    x = torch.where(smaller, part, rest) / torch.where(smaller, rest, part)
    return torch.where(smaller, x, 1.0) / (1 + x)


class Sure:
    """The rows that have a class with p > ½. The 1 − p of that class is computed from all other classes.

    Attributes:
        rows: (n) the indices of these rows.
        top: (n, 1) the class with p > ½.
        log_rest: (n, 1) its log(1 − p).
        shares: (n, C) the share of each other class in 1 − p, which is the derivative of log_rest.
    """

    def __init__(self, log_p: Tensor) -> None:
        self.rows = (log_p.amax(-1) > -0.69).nonzero().squeeze(-1)
        sure = log_p[self.rows]
        self.top = sure.argmax(-1, keepdim=True)
        others = sure.scatter_(-1, self.top, -torch.inf)
        self.log_rest = log_sum(others)
        self.shares = torch.where(self.log_rest.isinf(), 0.0, others.softmax(-1))

    def put(self, values: Tensor, at_top: Tensor) -> None:
        """Write `at_top` (n, 1) into values (N, C), at the classes with p > ½."""
        if len(self.rows):
            values[self.rows] = values[self.rows].scatter_(-1, self.top, at_top)

    def spread(self, grad: Tensor, slope: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient (N, C), with that of the classes with p > ½ passed on to the others by `slope`."""
        if not len(self.rows):
            return gradient
        at_top = grad[self.rows].gather(-1, self.top)
        return gradient.index_add(0, self.rows, self.shares * (at_top * slope))


class _LogRest(Function):
    """log(1 − p) of every class, computed in few passes over memory."""

    @staticmethod
    def forward(ctx: Any, log_p: Tensor) -> Tensor:
        """Return the logarithms, and keep their slopes if a gradient is needed."""
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
        """Return the derivative: −p/(1 − p), and for a class with p > ½ the shares of the others in 1 − p."""
        if torch.is_grad_enabled():  # for a second derivative
            return differentiable_gradient(lambda log_p: log_p_and_rest(log_p)[1], ctx.saved_tensors[0], grad)
        flat = grad.reshape(ctx.slopes.shape)
        sure: Sure = ctx.sure
        return sure.spread(flat, torch.ones_like(sure.log_rest), flat * ctx.slopes).view(grad.shape)
