"""Settings of torch under which a run gives the same numbers every time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def repeatable_torch() -> Iterator[None]:
    """Make GPUs compute repeatably inside, and give the caller's settings and number of threads back afterwards."""
    threads, cudnn = torch.get_num_threads(), torch.backends.cudnn
    try:
        with cudnn.flags(enabled=cudnn.enabled, benchmark=False, deterministic=True):
            yield
    finally:
        torch.set_num_threads(threads)
