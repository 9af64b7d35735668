"""An exponential moving average of the weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Average:
    """The average of a module's weights and running statistics, evaluated in their place."""

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        self._live = [tensor for tensor in (*module.parameters(), *module.buffers()) if tensor.is_floating_point()]
        self._average = [tensor.detach().clone() for tensor in self._live]

    @torch.no_grad()
    def update(self) -> None:
        """Move towards the weights of now."""
        torch._foreach_lerp_(self._average, [tensor.detach() for tensor in self._live], 1 - self.decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside, the module has the average as its weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for i, live in enumerate(self._live):
            live.data, self._average[i] = self._average[i], live.data

    def state(self) -> dict[str, Tensor]:
        """The average, for a checkpoint."""
        return {str(i): tensor for i, tensor in enumerate(self._average)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """The average of a checkpoint."""
        for i, tensor in enumerate(self._average):
            tensor.copy_(state[str(i)])
