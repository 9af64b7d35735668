"""Measure how long an epoch of a run takes, from a few of its steps."""

from __future__ import annotations

import time

import torch

from postmax.train.build import build
from postmax.train.config import RunConfig
from postmax.train.repeatable import repeatable_torch
from postmax.train.trainer import Trainer

_FEW_ROWS, _SHORT_STEP, _STEPS = 16, 0.1, 5
# A forward pass takes about a third of the time of a training step, and held-out rows need no more.
_FORWARD = 1 / 3


def measure_epoch_seconds(config: RunConfig) -> float:
    """Return about how many seconds an epoch takes on this machine, evaluation included.

    Only a few steps are measured, so the result is an estimate. A method whose later epochs do more work than its first
    takes longer than this.

    Raises:
        InputError: If the run cannot be started.
    """
    with torch.random.fork_rng(), repeatable_torch():
        rows = min(_FEW_ROWS, config.batch_size)
        built = build(config.model_copy(update={"batch_size": rows}))
        torch.set_num_threads(built.threads)
        seconds = _seconds_of_a_step(built.trainer)
        if rows < config.batch_size and seconds * config.batch_size / rows < _SHORT_STEP:
            # Larger batches use a machine better. Where it is quick to do so, they are measured at their real size.
            rows = config.batch_size
            seconds = _seconds_of_a_step(build(config).trainer)
    first = built.data[0]
    train, test = len(first.train), len(first.test) + sum(map(len, first.also.values()))
    return seconds / rows * (train + _FORWARD * test / config.evaluate_every)


def _seconds_of_a_step(trainer: Trainer) -> float:
    """Return the seconds of the fastest of a few steps. The very first step also prepares what the others use."""
    times = []
    start = time.perf_counter()
    for _, _ in zip(range(1 + _STEPS), trainer.steps(0), strict=False):
        now = time.perf_counter()
        times.append(now - start)
        start = now
        if sum(times) > 2:
            break
    return min(times)
