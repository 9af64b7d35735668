"""How many runs this machine has room for at once."""

from __future__ import annotations

import os
from collections.abc import Iterable

import torch


def cores() -> int:
    """Those this process may use, which in a container can be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):  # macOS has none
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_workers(accelerators: Iterable[str]) -> int:
    """One for each core; only one if a run goes to the GPU, whose memory and time several would fight for.

    Args:
        accelerators: Of the runs, as their configurations name them.
    """
    return 1 if any(map(_on_gpu, accelerators)) else cores()


def _on_gpu(accelerator: str) -> bool:
    if accelerator == "auto":
        return torch.cuda.is_available() or torch.backends.mps.is_available()
    return accelerator != "cpu"
