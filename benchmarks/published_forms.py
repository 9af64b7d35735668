"""Compare the gradient at the label's logit of robust losses as they are usually written and in postmax.

python benchmarks/published_forms.py        # prints the tables of docs/published-forms.md

The usual forms are the formulas of the papers in the dtype of the logits, with the clamps and epsilons of public code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import torch
from torch import Tensor
from torch.nn.functional import one_hot

import postmax as pm

Number = Any  # mpmath has no types

mp.mp.dps = 60

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MARGINS = (10.0, 20.0, 50.0, 100.0, 150.0, 1e4)
ROWS = 32
EPS, A, Q = 1e-7, -math.log(1e-4), 0.7


@dataclass(frozen=True)
class Form:
    """One way to write a loss.

    Attributes:
        loss: The name of the loss in postmax.
        written: The code in short.
        of: The losses of logits (N, C) whose label is class 0.
    """

    loss: str
    written: str
    of: Callable[[Tensor], Tensor]


def label_p(logits: Tensor) -> Tensor:
    """Return the probability of the label, which is class 0."""
    return logits.softmax(1)[:, 0]


def reverse(logits: Tensor) -> Tensor:
    """Return reverse cross-entropy with clamped probabilities and a clamped label."""
    label = one_hot(torch.zeros(len(logits), dtype=torch.int64), logits.shape[1]).to(logits.dtype)
    return -(logits.softmax(1).clamp(EPS, 1) * label.clamp(1e-4, 1).log()).sum(1)


def focal(logits: Tensor) -> Tensor:
    """Return (1 − p)^½ · −log p."""
    log_p = logits.log_softmax(1)[:, 0]
    return -((1 - log_p.exp()) ** 0.5) * log_p


def negative(logits: Tensor) -> Tensor:
    """Return NNCE with clamped probabilities."""
    shares = -math.log(EPS) + logits.softmax(1).clamp(EPS, 1).log()
    return 1 - shares[:, 0] / shares.sum(1)


USUAL = (
    Form("gce", "`1 - softmax**q`", lambda z: (1 - label_p(z) ** Q) / Q),
    Form("gce", "`1 - (softmax + 1e-9)**q`", lambda z: (1 - (label_p(z) + 1e-9) ** Q) / Q),
    Form("gce", "`1 - softmax.clamp(1e-7)**q`", lambda z: (1 - label_p(z).clamp(EPS, 1) ** Q) / Q),
    Form("gce", "`-expm1(q * log_softmax)`", lambda z: -(Q * z.log_softmax(1)[:, 0]).expm1() / Q),
    Form("nce", "`log_p[y] / log_p.sum()`", lambda z: z.log_softmax(1)[:, 0] / z.log_softmax(1).sum(1)),
    Form("mae", "`1 - softmax[y]`", lambda z: 1 - label_p(z)),
    Form("rce", "clamped p, clamped label", reverse),
    Form("sce", "`0.1 * ce + rce`", lambda z: -0.1 * z.log_softmax(1)[:, 0] + reverse(z)),
    Form("focal", "`(1 - p)**0.5 * -log_p`", focal),
    Form("aul", "`(a - softmax)**q - (a - 1)**q`", lambda z: ((5.5 - label_p(z)) ** 3 - 4.5**3) / 3),
    Form("nnce", "`softmax.clamp(1e-7).log()`", negative),
)
LOSSES = tuple(dict.fromkeys(form.loss for form in USUAL))

# The derivative of the loss of class 0 in its logit, from mpmath numbers p, r = 1 − p and the probabilities of all.
SLOPES: dict[str, Callable[[Number, Number, list[Number]], Number]] = {
    "gce": lambda p, r, _: -(p ** mp.mpf(Q)) * r,
    "nce": lambda p, r, all_p: slope_of_share([-mp.log(x) for x in all_p], [-r, *[p] * (len(all_p) - 1)]),
    "mae": lambda p, r, _: -p * r,
    "rce": lambda p, r, _: -mp.mpf(A) * p * r,
    "sce": lambda p, r, _: -mp.mpf(0.1) * r - mp.mpf(A) * p * r,
    "focal": lambda p, r, _: mp.sqrt(r) * (p * mp.log(p) / 2 - r),
    "aul": lambda p, r, _: -((mp.mpf(5.5) - p) ** 2) * p * r,
    "nnce": lambda p, r, all_p: (
        -slope_of_share(
            [max(mp.log(x / mp.mpf(EPS)), 0) for x in all_p],
            [slope * (x > EPS) for x, slope in zip(all_p, [r, *[-p] * (len(all_p) - 1)], strict=True)],
        )
    ),
}


def slope_of_share(values: list[Number], slopes: list[Number]) -> Number:
    """Return the derivative of values[0]/Σ values, from the derivatives of the values."""
    total = sum(values)
    return (slopes[0] * total - values[0] * sum(slopes)) / total**2


def exact(loss: str, row: list[float]) -> Number:
    """Return the true derivative for a row of logits, to about 50 digits."""
    weights = [mp.exp(mp.mpf(z)) for z in row]
    p = [w / sum(weights) for w in weights]
    return SLOPES[loss](p[0], sum(p[1:]), p)


def ours(loss: str) -> Form:
    """Return the loss of postmax."""
    module = pm.losses.get(loss, reduction="none")
    return Form(loss, "**postmax**", lambda z: module(z, torch.zeros(len(z), dtype=torch.int64)))


def draws(label_logit: float, dtype: torch.dtype) -> Tensor:
    """Return rows of logits: nine other classes between −1 and 1, and the logit of the label near its place."""
    logits = 2 * torch.rand(ROWS, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 1
    logits[:, 0] = logits[:, 0] / 4 + label_logit
    return logits.to(dtype)


def worst(form: Form, label_logit: float, dtype: torch.dtype) -> tuple[float, float, Number]:
    """Return (relative error, gradient, true gradient) for the largest error; 0 if every gradient is rounded."""
    logits = draws(label_logit, dtype).requires_grad_()
    gradients = torch.autograd.grad(form.of(logits).sum(), logits)[0][:, 0]
    found = []
    for row, gradient in zip(logits.tolist(), gradients.tolist(), strict=True):
        true = exact(form.loss, row)
        nearest = float(torch.tensor(float(true), dtype=torch.float64).to(dtype))
        if gradient == nearest:
            found.append((0.0, gradient, true))
        else:
            finite = math.isfinite(gradient) and true
            found.append((float(abs(mp.mpf(gradient) / true - 1)) if finite else math.inf, gradient, true))
    return max(found, key=lambda case: case[0])


def cell(form: Form, label_logit: float, dtype: torch.dtype) -> str:
    """Return the text of a cell: the relative error, or a word for what is wrong."""
    error, gradient, true = worst(form, label_logit, dtype)
    if error == 0:
        return "rounded" if gradient else "0, rounded"
    if not math.isfinite(gradient):
        return "**NaN**" if math.isnan(gradient) else "**∞**"
    if error < 0.5:
        return f"{error:.0e}"
    return f"**{f'{gradient:.0e}' if gradient else '0'}** (true {float(true):.0e})"


def table(dtype: torch.dtype, margins: tuple[float, ...], losses: tuple[str, ...], side: int) -> Iterator[str]:
    """Yield the lines of a table; side is −1 for a label logit below the others and 1 for one above."""
    yield f"| {str(dtype).removeprefix('torch.')} | as written | " + " | ".join(f"m = {m:g}" for m in margins) + " |"
    yield "|---|---|" + "---:|" * len(margins)
    for loss in losses:
        for form in (*(form for form in USUAL if form.loss == loss), ours(loss)):
            cells = " | ".join(cell(form, side * m, dtype) for m in margins)
            yield f"| {loss} | {form.written} | {cells} |"


def main() -> None:
    """Print the tables."""
    for dtype in DTYPES:
        print(*table(dtype, MARGINS, LOSSES, -1), sep="\n", end="\n\n")
    for dtype in DTYPES:
        print(*table(dtype, (5.0, 10.0, 20.0, 50.0), ("focal",), 1), sep="\n", end="\n\n")


if __name__ == "__main__":
    main()
