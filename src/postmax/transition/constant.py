"""A matrix that follows the data to its device, copied once."""

from __future__ import annotations

import torch
from torch import Tensor


class Constant:
    """A float64 tensor on the CPU, handed out in the device and dtype of whatever it meets.

    Copies are kept: a training loop on a GPU must not move the same matrix at every step.

    Example:
        >>> Constant(torch.eye(2, dtype=torch.float64)).like(torch.zeros(3))
        tensor([[1., 0.],
                [0., 1.]])
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self._copies: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def like(self, other: Tensor) -> Tensor:
        """The tensor in the device of `other`; in its dtype too, unless it holds indices."""
        dtype = other.dtype if self.tensor.is_floating_point() else self.tensor.dtype
        if torch.compiler.is_compiling():
            return self.tensor.to(other.device, dtype)
        key = (other.device, dtype)
        if key not in self._copies:
            self._copies[key] = self.tensor.to(other.device, dtype)
        return self._copies[key]

    def __getstate__(self) -> dict[str, object]:
        return {"tensor": self.tensor, "_copies": {}}
