"""An exponential moving average of the weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Average:
    """The exponential moving average of a module's weights and running statistics.

    The decay after t steps is min(decay, (1 + t) / (10 + t)). So the average follows quickly at first: otherwise a
    short training would end with an average that consists mostly of the random initial weights.

    Args:
        module: The module whose weights are averaged.
        decay: The share of the old average that is kept in each step.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        self.steps = 0
        self._live = [tensor for tensor in (*module.parameters(), *module.buffers()) if tensor.is_floating_point()]
        self._average = [tensor.detach().clone() for tensor in self._live]

    @torch.no_grad()
    def update(self) -> None:
        """Move the average towards the present weights."""
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(self._average, [tensor.detach() for tensor in self._live], 1 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Give the module the average as its weights inside, and its own weights back afterwards."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for i, live in enumerate(self._live):
            live.data, self._average[i] = self._average[i], live.data

    def state(self) -> dict[str, Tensor]:
        """Return the average, for a checkpoint."""
        return {"steps": torch.tensor(self.steps), **{str(i): tensor for i, tensor in enumerate(self._average)}}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Put back what `state` returned."""
        self.steps = int(state["steps"])
        for i, tensor in enumerate(self._average):
            tensor.copy_(state[str(i)])
