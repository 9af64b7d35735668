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
    """

    def __init__(
        self,
        number: int,
        epochs: int,
        batches: Batches,
        resources: Resources,
        fabric: Fabric,
        outputs: Callable[[nn.Module], Tensor],
    ) -> None:
        self.number, self._epochs = number, epochs
        self._batches, self._resources, self._fabric, self._outputs = batches, resources, fabric, outputs
        self._steps: Counter[int] = Counter()

    @property
    def share(self) -> float:
        """The share of the training that is over."""
        return self.number / self._epochs

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

    def update(self, loss: Tensor, *optimisers: Optimizer) -> None:
        """Compute the gradient of a scalar loss once, and make one step with each optimiser."""
        chosen = [self._resources.scheduled(optimiser) for optimiser in optimisers]
        steps = len(self._batches)
        for one in chosen:
            # A method may make more steps in an epoch than there are batches. The rate then stays at the last one.
            place = min(self._steps[id(one)], steps - 1)
            one.set_rate(self.number * steps + place, steps, self._epochs)
            one.forget_gradients()
            self._steps[id(one)] += 1
        self._fabric.backward(loss)
        for one in chosen:
            one.step()

    def generator(self, key: str) -> torch.Generator:
        """Return a random generator that depends on the seed, this epoch and the key."""
        return generator_for(self._batches.seed, "method", key, self.number)
