"""Rows like those of a training, to try a model with: nobody's data are in them."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.data import generator_for
from postmax.runs.trained import Trained


def example_rows(model: Trained, count: int, *, missing: float = 0.0) -> Tensor:
    """Return features around the means of the training rows, as widely spread; or images of noise.

    Args:
        model: The model.
        count: How many rows.
        missing: The share of features that are NaN.
    """
    shape, generator = (count, *model.saved.rows.shape), generator_for(0, "example rows", count)
    if model.saved.rows.are_images:
        return torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    rows = torch.randn(shape, generator=generator, dtype=torch.float64)
    if model.spread is not None:
        mean, factor = model.spread
        rows = mean + rows / torch.where(factor > 0, factor, 1.0)
        rows[torch.rand(shape, generator=generator) < missing] = torch.nan
    return rows.float()
