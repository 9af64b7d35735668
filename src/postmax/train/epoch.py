"""One epoch, as the training loop offers it to a method."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from postmax.data import Batch, Batches, generator_for
from postmax.train.optimisers import weights_rate
from postmax.train.resources import Resources

if TYPE_CHECKING:
    from lightning_fabric import Fabric


class EpochRun:
    """Implements `postmax.methods.Epoch` for one seed.

    Args:
        number: The number of the epoch, counted from 0.
        epochs: How many epochs there are.
        batches: The batches of the training rows.
        resources: The networks and optimisers of the method.
        fabric: Computes gradients.
        outputs: Returns the outputs of a network for all training rows.
        after_update: Is called with the parameters that an update has moved.
    """

    def __init__(
        self,
        number: int,
        epochs: int,
        batches: Batches,
        resources: Resources,
        fabric: Fabric,
        outputs: Callable[[nn.Module], Tensor],
        after_update: Callable[[Sequence[Tensor]], None],
    ) -> None:
        self.number, self._epochs = number, epochs
        self._batches, self._resources, self._fabric, self._outputs = batches, resources, fabric, outputs
        self._after_update = after_update
        self._steps: Counter[int] = Counter()

    @property
    def share(self) -> float:
        """The share of the training that is over."""
        return self.number / self._epochs

    @property
    def steps(self) -> int:
        """How many batches one pass over all rows has."""
        return len(self._batches)

    def batches(
        self,
        rows: Tensor | None = None,
        *,
        views: Sequence[str] = ("weak",),
        size: int | None = None,
        stream: str = "",
        endless: bool = False,
    ) -> Iterator[Batch]:
        """Yield shuffled batches of training rows; see `postmax.methods.Epoch`."""
        if rows is not None and not len(rows):
            return
        for turn in itertools.count() if endless else (0,):
            name = f"{stream}/{turn}" if turn else stream
            yield from self._batches.epoch(self.number, rows, stream=name, views=tuple(views), size=size)

    def evaluate(self, network: nn.Module) -> Tensor:
        """Return the outputs (N, K) of a network for all training rows; see `postmax.methods.Epoch`."""
        was_training = network.training
        network.eval()
        try:
            return self._outputs(network)
        finally:
            network.train(was_training)

    def update(self, loss: Tensor, *optimisers: Optimizer, rate: float = 1.0) -> None:
        """Compute the gradient of a scalar loss once, and make one step with each optimiser; see `Epoch`."""
        chosen = [self._resources.settings_of(optimiser) for optimiser in optimisers]
        steps = len(self._batches)
        for one in chosen:
            # A method may make more steps in an epoch than there are batches. The rate then stays at the last one.
            place = min(self._steps[id(one)], steps - 1)
            one.set_rate(self.number * steps + place, steps, self._epochs, factor=rate)
            one.forget_gradients()
            self._steps[id(one)] += 1
        self._fabric.backward(loss)
        for one in chosen:
            one.step()
        self._after_update([parameter for one in chosen for parameter in one.parameters])

    def rate(self) -> float:
        """Return the learning rate of the last step; where several optimisers made steps, that of the first one.

        An optimiser that made no step in this epoch may have any rate: it depends on where the run was resumed.
        """
        known = list(self._resources.optimisers.values())
        chosen = next((found for found in known if self._steps[id(found)]), known[0])
        return weights_rate(chosen.optimiser)

    def generator(self, key: str) -> torch.Generator:
        """Return a random generator that depends on the seed, this epoch and the key."""
        return generator_for(self._batches.seed, "method", key, self.number)
