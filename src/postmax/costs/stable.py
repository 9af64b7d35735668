"""Functions of log-probabilities whose automatic derivatives are as accurate as their values."""

from __future__ import annotations

import torch
from torch import Tensor

# A little above log ½: at most one class of a row has a log-probability above it.
_NEAR_ONE = -0.69


def expm1(x: Tensor) -> Tensor:
    """e^x − 1.

    torch differentiates its own as result + 1, which is 0 instead of e^x as soon as the result rounds to −1.
    """
    near = x > -0.5
    return torch.where(near, torch.where(near, x, 0.0).expm1(), torch.where(near, -1.0, x).exp() - 1)


def complement(log_p: Tensor) -> Tensor:
    """1 − p."""
    return -expm1(log_p)


def log_complement(logits: Tensor) -> Tensor:
    """log(1 − p) of every class of the softmax, (…, C), also where p rounds to 1."""
    return log_rest(logits.log_softmax(-1))


def log_sum(log_p: Tensor) -> Tensor:
    """(…, 1) the logarithm of a sum of probabilities, not all of them zero.

    torch differentiates its own as exp(log p − result), which has few digits left where both are far from 0.
    """
    largest = log_p.amax(-1, keepdim=True).detach()
    return (log_p - largest).logsumexp(-1, keepdim=True) + largest


def log_rest(log_p: Tensor) -> Tensor:
    """log(1 − p) of every class, (…, C), from the log-probabilities of all; where p is above ½, from the others."""
    near = log_p > _NEAR_ONE
    others = log_sum(log_p.masked_fill(near, -torch.inf))
    return torch.where(near, others, (-torch.where(near, -1.0, log_p).exp()).log1p())


def log_p_and_rest(log_p: Tensor) -> tuple[Tensor, Tensor]:
    """(log p, log(1 − p)) of every class, both to all digits: log p = −1e-30 does not round to 0 and stay there."""
    near, rest = log_p > _NEAR_ONE, log_rest(log_p)
    return torch.where(near, (-torch.where(near, rest, -1.0).exp()).log1p(), log_p), rest


def share(part: Tensor, rest: Tensor) -> Tensor:
    """part/(part + rest) of two that are not negative and not both zero.

    The derivative of the plain quotient subtracts part/sum² from 1/sum, which are almost equal if the rest is small.
    """
    smaller = part < rest
    x = torch.where(smaller, part, rest) / torch.where(smaller, rest, part)
    return torch.where(smaller, x, 1.0) / (1 + x)
