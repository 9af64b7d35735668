"""An exponential moving average of the weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from postmax.train.state import State, named


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

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Put back what `state` returned."""
        self.steps = int(state["steps"])
        for i, tensor in enumerate(self._average):
            tensor.copy_(state[str(i)])


class NetworkAverages:
    """One average for each network that an optimiser moves. A network's average moves when the network does.

    Args:
        networks: The networks of a method.
        trained: The parameters that optimisers move. A network without any of them, such as a teacher, has no average.
        decay: The decay of the averages; None for no averages at all.
    """

    def __init__(self, networks: Sequence[nn.Module], trained: Sequence[Tensor], decay: float | None) -> None:
        known = {id(parameter) for parameter in trained}
        self._averages: dict[int, Average] = {}
        self._of: dict[int, Average] = {}
        for number, network in enumerate(networks) if decay is not None else ():
            mine = [id(parameter) for parameter in network.parameters() if id(parameter) in known]
            if mine and decay is not None:
                self._averages[number] = Average(network, decay)
                self._of.update(dict.fromkeys(mine, self._averages[number]))

    def update(self, moved: Sequence[Tensor]) -> None:
        """Move the averages of the networks to which these parameters belong."""
        found = {id(self._of[id(p)]): self._of[id(p)] for p in moved if id(p) in self._of} if self._of else {}
        for average in found.values():
            average.update()

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Give all networks their averages as weights inside, and their own weights back afterwards."""
        with ExitStack() as stack:
            for average in self._averages.values():
                stack.enter_context(average.in_place())
            yield

    def save(self) -> State:
        """Return the averages, for a checkpoint."""
        found: dict[str, Tensor] = {}
        for number, average in self._averages.items():
            found |= named(f"average/{number}", average.state())
        return State(found)

    def restore(self, state: State) -> None:
        """Put back what `save` returned."""
        for number, average in self._averages.items():
            average.restore(state.part(f"average/{number}"))
