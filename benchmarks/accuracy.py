"""Measure the largest error of every divergence against mpmath with 50 digits, for s = log D from −1000 to 1000.

python benchmarks/accuracy.py        # prints the table of docs/accuracy.md
"""

from __future__ import annotations

import torch
from mpmath_reference import GENERATORS, error_in_ulps, exact
from torch import Tensor

from postmax import divergences
from postmax.transition.full_precision import working_dtype

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
COLUMNS = {"value": ("score", "penalty"), "gradient": ("score_slope", "penalty_slope")}


def grid(dtype: torch.dtype) -> Tensor:
    """Return the points: few far from 0, many where the functions bend, and some around the zero of most of them."""
    far, middle, near = torch.linspace(-1000, 1000, 41), torch.linspace(-100, 100, 41), torch.linspace(-9, 9, 73)
    tiny = torch.tensor([1e-6, -1e-6, 1e-3, -1e-3])
    return torch.cat([far, middle, near, tiny]).to(dtype)


def worst_error(name: str, quantity: str, dtype: torch.dtype) -> float:
    """Return the largest error in units of eps. Half precision is computed in float32 and rounded, as in the loss."""
    s = grid(dtype)
    values = getattr(divergences.get(name), quantity)(s.to(working_dtype(s))).to(dtype)
    info = torch.finfo(dtype)
    return max(
        error_in_ulps(v, exact(name, quantity, x), info.max, info.tiny, info.eps)
        for x, v in zip(s.tolist(), values.tolist(), strict=True)
    )


def main() -> None:
    """Print the table."""
    head = " | ".join(f"{dtype} {column}".removeprefix("torch.") for dtype in DTYPES for column in COLUMNS)
    print(f"| divergence | {head} |\n|---|" + "---:|" * len(DTYPES) * len(COLUMNS))
    for name in GENERATORS:
        cells = []
        for dtype in DTYPES:
            for quantities in COLUMNS.values():
                ulps = max(worst_error(name, quantity, dtype) for quantity in quantities)
                cells.append(f"{ulps * torch.finfo(dtype).eps:.1e}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
