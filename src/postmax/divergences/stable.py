"""Elementary functions, written so that they lose no digits, do not overflow, and are fast."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus as torch_softplus

_MERGED = 8
_WORTH_MERGING = 2**18
_BLOCK = 2**18


def softplus(x: Tensor) -> Tensor:
    """Return log(1 + e^x) to full precision. With torch's default threshold it is wrong from the tenth digit on."""
    return torch_softplus(x, threshold=700.0 if x.dtype == torch.float64 else 80.0)


def softplus_sum_and_sigmoid(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return Σ log(1 + e^x) over the last dimension, and σ(x), hardly slower than σ(x) alone. There is no gradient."""
    sigmoid = x.sigmoid()
    if x.numel() < _WORTH_MERGING:
        return softplus(x).sum(-1), sigmoid
    if x.ndim != 2:
        return _softplus_sum(x, sigmoid, torch.empty_like(sigmoid)), sigmoid
    # New memory for all of x would take longer than the sums, so blocks of rows share a small buffer.
    rows = max(1, _BLOCK // x.shape[1])
    scratch = torch.empty_like(sigmoid[:rows])
    blocks = zip(torch.split(x, rows), torch.split(sigmoid, rows), strict=True)
    return torch.cat([_softplus_sum(z, p, scratch[: len(z)]) for z, p in blocks]), sigmoid


def _softplus_sum(x: Tensor, sigmoid: Tensor, scratch: Tensor) -> Tensor:
    """Return Σ log(1 + e^x) over the last dimension, given σ(x) and a buffer of the same shape.

    `log(1 + e^x) = max(x, 0) − log(1 − m)` with `m = min(σ(x), σ(−x))`. The digits that `σ(−x) = 1 − σ(x)` loses are
    too small to matter beside max(x, 0). Logarithms take most of the time, so eight elements share one:
    `(1 − a)(1 − b) = 1 − (a + b − ab)`, which loses no digits for a, b ≤ 1/2.
    """
    torch.sub(1, sigmoid, out=scratch)
    merged = torch.minimum(sigmoid, scratch, out=scratch)
    tail = x.shape[-1] % _MERGED
    rest, merged = merged[..., x.shape[-1] - tail :], merged[..., : x.shape[-1] - tail]
    for _ in range(_MERGED.bit_length() - 1):
        a, b = merged.tensor_split(2, -1)
        merged = a.add_(b.addcmul_(a, b, value=-1))
    logs = merged.neg_().log1p_().sum(-1)
    if tail:
        logs += rest.neg_().log1p_().sum(-1)
    return torch.clamp_min(x, 0, out=scratch).sum(-1).sub_(logs)


def softplus_minus_sigmoid(x: Tensor) -> Tensor:
    """Return log(1 + e^x) − σ(x). For very negative x the two terms agree to all digits, and it is e^(2x)/2.

    For x ≤ 0 let y = e^x / (2 + e^x) ≤ 1/3. Then log(1 + e^x) = 2 artanh(y), σ(x) = 2y/(1 + y), and the difference is
    2y²/(1 + y) + 2y³(1/3 + y²/5 + y⁴/7 + …), a sum of positive terms.
    """
    e = x.clamp_max(0).exp()
    y = e / (2 + e)
    square = y * y
    terms = 17 if x.dtype == torch.float64 else 8
    series = torch.full_like(y, 1 / (2 * terms + 1))
    for n in range(terms - 1, 0, -1):
        series = series * square + 1 / (2 * n + 1)
    left = 2 * square * (1 / (1 + y) + y * series)
    return torch.where(x <= 0, left, softplus(x) - x.sigmoid())


def log_mean_with_one(x: Tensor) -> Tensor:
    """Return log((1 + e^x)/2), accurate also around its zero at x = 0."""
    return torch.where(x < 40, (x.clamp_max(40).expm1() / 2).log1p(), x - math.log(2))


def scaled_expm1(x: Tensor, rate: float) -> Tensor:
    """Return (e^(rate·x) − 1)/rate, with its limit x at rate 0."""
    return x * 1.0 if rate == 0 else (rate * x).expm1() / rate
