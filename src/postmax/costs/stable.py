"""Functions of log-probabilities whose automatic derivatives are as accurate as their values."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.costs.odds import log_p_and_rest_of

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
    return log_p_and_rest(log_p)[1]


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
