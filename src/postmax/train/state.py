"""The state of a trainer, as a checkpoint stores it: named tensors and plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class State:
    """Named tensors and plain values. Names are paths, such as "network/0/fc.weight".

    Example:
        >>> import torch
        >>> state = State({"network/0/fc.bias": torch.zeros(1)}, {"watch": {"scale": 1.0}})
        >>> state.part("network/0")
        {'fc.bias': tensor([0.])}
    """

    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)

    def part(self, name: str) -> dict[str, Tensor]:
        """Return the tensors whose names start with `name/`, without that prefix."""
        prefix = f"{name}/"
        return {key.removeprefix(prefix): tensor for key, tensor in self.tensors.items() if key.startswith(prefix)}


def named(name: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the same tensors with `name/` in front of their names."""
    return {f"{name}/{key}": tensor for key, tensor in tensors.items()}
