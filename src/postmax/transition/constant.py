"""Constants that are copied to each device once."""

from __future__ import annotations

import torch
from torch import Tensor


class Constant:
    """A tensor on the CPU, of which `like` returns copies on other devices and in other dtypes.

    Copies are kept, so that a training loop on a GPU does not copy the same matrix at every step.

    Example:
        >>> Constant(torch.eye(2, dtype=torch.float64)).like(torch.zeros(3))
        tensor([[1., 0.],
                [0., 1.]])
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self._copies: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def like(self, other: Tensor) -> Tensor:
        """Return the tensor on the device of `other`, and in its dtype unless the tensor holds indices."""
        dtype = other.dtype if self.tensor.is_floating_point() else self.tensor.dtype
        if torch.compiler.is_compiling():
            return self.tensor.to(other.device, dtype)
        key = (other.device, dtype)
        if key not in self._copies:
            self._copies[key] = self.tensor.to(other.device, dtype)
        return self._copies[key]

    def __getstate__(self) -> dict[str, object]:
        return {"tensor": self.tensor, "_copies": {}}
