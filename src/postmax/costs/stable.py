"""Functions of log-probabilities whose automatic derivatives are as accurate as their values."""

from __future__ import annotations

import torch
from torch import Tensor


def expm1(x: Tensor) -> Tensor:
    """e^x − 1 for x ≤ 0.

    torch differentiates its own as result + 1, which is 0 instead of e^x as soon as the result rounds to −1.
    """
    near = x > -0.5
    return torch.where(near, torch.where(near, x, 0.0).expm1(), torch.where(near, -1.0, x).exp() - 1)


def complement(log_p: Tensor) -> Tensor:
    """1 − p."""
    return -expm1(log_p)


def log_complement(logits: Tensor) -> Tensor:
    """log(1 − p) of every class of the softmax, (…, C), also where p rounds to 1.

    Only the largest p can be above one half; for it, 1 − p is summed from the others.
    """
    log_p = logits.log_softmax(-1)
    largest = torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).bool()
    rest = logits.masked_fill(largest, -torch.inf).logsumexp(-1, keepdim=True) - logits.logsumexp(-1, keepdim=True)
    return torch.where(largest, rest, (-torch.where(largest, -1.0, log_p).exp()).log1p())
