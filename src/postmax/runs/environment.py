"""What a result depends on beside its configuration: versions, plugins, the kind of machine, the number of threads."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import torch

from postmax import plugins
from postmax.version import __version__

_PACKAGES = ("torch", "numpy", "lightning-fabric", "safetensors", "scikit-learn", "scipy")


def environment(device: torch.device | None = None) -> dict[str, str]:
    """Return versions, plugins, the kind of machine and the number of threads. It does not say who ran it, or where."""
    found = {"postmax": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    if loaded := plugins.described():
        found["plugins"] = ", ".join(loaded)
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["threads"] = str(torch.get_num_threads())
    if device is not None:
        found["device"] = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return found
