"""A small network that learns images in few epochs, to estimate the noise of their labels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor, nn

from postmax import models
from postmax.data import Augment, Batches, Dataset, Statistics, channel_statistics
from postmax.losses import FPMLLoss
from postmax.train.config import OptimiserConfig, ScheduleConfig
from postmax.train.optimisers import ScheduledOptimiser, make_optimiser
from postmax.train.randomness import seed_network

LEAST_SIDE = 9
_WIDTH = 16
# Where there are few images, batches are smaller and epochs are more, so that there are enough steps.
_BATCH, _SMALLEST_BATCH, _LEAST_BATCHES, _LEAST_EPOCHS, _LEAST_STEPS = 250, 16, 25, 6, 600
_RATE, _SCHEDULE = 0.375, ScheduleConfig(name="one-cycle", peak=0.23)
_AT_ONCE = 500


class Plan(NamedTuple):
    """How a network is trained: images in a batch, batches in an epoch, and epochs."""

    batch: int
    batches: int
    epochs: int

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.batches * self.epochs


def plan_for(count: int) -> Plan:
    """Return how a network is trained on this many images.

    Example:
        >>> plan_for(25_000), plan_for(200)
        (Plan(batch=250, batches=100, epochs=6), Plan(batch=16, batches=12, epochs=50))
    """
    batch = min(_BATCH, max(_SMALLEST_BATCH, count // _LEAST_BATCHES), count)
    batches = count // batch
    return Plan(batch, batches, max(_LEAST_EPOCHS, math.ceil(_LEAST_STEPS / batches)))


def augmentation_for(images: Tensor) -> Augment:
    """Return small shifts, and mirror images of what has colours. Grey images may be digits or letters."""
    found = channel_statistics(images)
    # A channel in which all pixels are equal stays as it is.
    statistics = Statistics(found.mean, tuple(std or 1.0 for std in found.std))
    flip = "alternate" if images.shape[1] > 1 else False
    return Augment(padding=2, padding_mode="reflect", flip=flip, statistics=statistics)  # type: ignore[arg-type]


def make_network(images: Tensor, augment: Augment, num_classes: int, seed: int, number: int) -> nn.Module:
    """Return network `number` of a seed, which has looked at some of the images."""
    shape = tuple(images.shape[1:])
    with torch.random.fork_rng(devices=[]):
        seed_network(seed, number)
        # Softmax needs no bias, and at the rate at which biases learn here that of the last layer would leap.
        options = {"width": _WIDTH, "test_flips": bool(augment.flip), "bias": False}
        network = models.get("fast", num_classes=num_classes, input_shape=shape, **options)
    some = torch.linspace(0, len(images) - 1, min(network.rows_before_training, len(images))).long()
    network.look_at(augment.evaluation()(images[some]))
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def learn(
    network: nn.Module, dataset: Dataset, rows: Tensor, plan: Plan, augment: Augment, loss: FPMLLoss, seed: int
) -> Iterator[None]:
    """Train a network on some of the images. It yields after each step, so that several can learn together."""
    config = OptimiserConfig(
        name="sgd", lr=_RATE * plan.batch / _BATCH, momentum=0.85, nesterov=True, weight_decay=1.3e-3, bias_rate=64
    )
    parameters = list(network.parameters())
    optimiser = ScheduledOptimiser(make_optimiser(config, parameters), parameters, config, _SCHEDULE)
    batches = Batches(dataset, plan.batch, augment=augment, drop_last=True, seed=seed)
    network.train()
    step = 0
    for epoch in range(plan.epochs):
        # Folds of unequal size may have one batch more than planned; the schedule would begin again.
        for batch in islice(batches.epoch(epoch, rows), plan.batches):
            optimiser.set_rate(step, plan.batches, plan.epochs)
            optimiser.forget_gradients()
            loss(network(batch.inputs), batch.labels).backward()
            optimiser.step()
            step += 1
            yield


def predict(
    network: nn.Module, images: Tensor, rows: Tensor, augment: Augment, loss: FPMLLoss, log_posterior: Tensor
) -> Iterator[None]:
    """Write the log-posteriors of some of the images to their places. It yields after each part."""
    network.eval()
    for part in rows.split(_AT_ONCE):
        with torch.no_grad():
            logits = network(augment.evaluation()(images[part])).double()
            log_posterior[part] = loss.posterior(logits).clamp_min(1e-300).log()
        yield
