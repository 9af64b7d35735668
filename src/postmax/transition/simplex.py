"""The projection onto the probability simplex."""

from __future__ import annotations

import torch
from torch import Tensor


def project_onto_simplex(values: Tensor) -> Tensor:
    """Return the nearest probability vector (Euclidean), over the last dimension.

    The projection is `max(v − τ, 0)` with the τ that makes the sum one, so it keeps the order of the entries.

    Example:
        >>> project_onto_simplex(torch.tensor([1.25, -0.25]))
        tensor([1., 0.])
        >>> project_onto_simplex(torch.tensor([0.5, 0.4, 0.4]))
        tensor([0.4000, 0.3000, 0.3000])
    """
    ranked = values.sort(-1, descending=True).values
    count = torch.arange(1, values.shape[-1] + 1, device=values.device, dtype=values.dtype)
    threshold = (ranked.cumsum(-1) - 1) / count
    support = (ranked > threshold).sum(-1, keepdim=True).clamp_min(1)
    return (values - threshold.gather(-1, support - 1)).clamp_min(0)
