"""Compute in float32 or float64, whatever the precision of the inputs and of the code around."""

from __future__ import annotations

import torch
from torch import Tensor


def working_dtype(tensor: Tensor) -> torch.dtype:
    """Return the dtype to compute in: float64 for float64, and float32 for everything narrower."""
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32


def autocast_enabled(tensor: Tensor) -> bool:
    """Return whether autocast is on for the tensor's device. Some devices have no autocast."""
    device = tensor.device.type
    # torch.compile of torch 2.6 cannot trace is_autocast_available, so the usual devices do not ask.
    available = device in ("cpu", "cuda") or torch.amp.is_autocast_available(device)
    return available and torch.is_autocast_enabled(device)


def full_product(rows: Tensor, matrix: Tensor) -> Tensor:
    """Return `rows` @ `matrix` in working precision, also for half precision and under autocast.

    In half precision probabilities would not sum to one, and on some CPUs such a product ends the process.

    Example:
        >>> full_product(torch.ones(1, 2).bfloat16(), torch.eye(2))
        tensor([[1., 1.]])
    """
    if autocast_enabled(rows):
        with torch.autocast(rows.device.type, enabled=False):
            return full_product(rows, matrix)
    rows = rows.to(working_dtype(rows))
    return rows @ matrix.to(rows)
