"""What a result depends on beside its configuration."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

import torch

import postmax

_PACKAGES = ("torch", "numpy", "lightning-fabric", "safetensors", "scikit-learn", "scipy")


def environment(device: torch.device | None = None) -> dict[str, str]:
    """Versions, the kind of machine, and how many threads; enough to run it again, nothing about who ran it."""
    found = {"postmax": postmax.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["threads"] = str(torch.get_num_threads())
    if device is not None:
        found["device"] = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return found


@contextmanager
def own_settings() -> Iterator[None]:
    """Inside, GPUs compute what can be repeated; afterwards the caller's settings and threads are back."""
    threads, cudnn = torch.get_num_threads(), torch.backends.cudnn
    try:
        with cudnn.flags(enabled=cudnn.enabled, benchmark=False, deterministic=True):
            yield
    finally:
        torch.set_num_threads(threads)
