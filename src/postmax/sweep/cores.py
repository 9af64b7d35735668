"""How many runs this machine can do at once."""

from __future__ import annotations

import os
from collections.abc import Iterable

import torch


def cores() -> int:
    """Return the number of cores that this process may use. In a container this can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):  # macOS does not have it
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_workers(accelerators: Iterable[str]) -> int:
    """Return how many runs should go at once: one for each core, but only one if a run uses the GPU.

    Several runs on one GPU would compete for its memory and its time.

    Args:
        accelerators: The accelerators that the configurations of the runs name.
    """
    return 1 if any(map(_on_gpu, accelerators)) else cores()


def _on_gpu(accelerator: str) -> bool:
    if accelerator == "auto":
        return torch.cuda.is_available() or torch.backends.mps.is_available()
    return accelerator != "cpu"
