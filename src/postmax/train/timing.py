"""What a run will cost, from a few of its steps."""

from __future__ import annotations

import time

import torch

from postmax.runs.environment import own_settings
from postmax.train.build import build
from postmax.train.config import RunConfig
from postmax.train.trainer import Trainer

_FEW_ROWS, _CHEAP, _STEPS = 16, 0.1, 5
# A forward pass is about a third of a training step, and held-out rows need no more.
_FORWARD = 1 / 3


def measure_epoch_seconds(config: RunConfig) -> float:
    """Seconds an epoch will take here, evaluation included; measured on a few steps, so no more than an estimate.

    Raises:
        InputError: If the run could not even be started.
    """
    with torch.random.fork_rng(), own_settings():
        rows = min(_FEW_ROWS, config.batch_size)
        built = build(config.model_copy(update={"batch_size": rows}))
        torch.set_num_threads(built.threads)
        seconds = _seconds_of_a_step(built.trainer)
        if rows < config.batch_size and seconds * config.batch_size / rows < _CHEAP:
            # Larger batches use a machine better; where that is cheap to know, they are measured as they are.
            rows = config.batch_size
            seconds = _seconds_of_a_step(build(config).trainer)
    first = built.data[0]
    train, test = len(first.train), len(first.test) + sum(map(len, first.also.values()))
    return seconds / rows * (train + _FORWARD * test / config.evaluate_every)


def _seconds_of_a_step(trainer: Trainer) -> float:
    """The fastest of a few; the very first makes ready what the others use."""
    times = []
    trainer.module.train()
    for position, batch in zip(range(1 + _STEPS), trainer.batches.epoch(0), strict=False):
        start = time.perf_counter()
        trainer.step(0, position, batch)
        times.append(time.perf_counter() - start)
        if sum(times) > 2:
            break
    return min(times)
