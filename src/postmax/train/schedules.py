"""Learning rates as functions of the step, so that a checkpoint need not save a scheduler."""

from __future__ import annotations

import math

from postmax.train.config import ScheduleConfig

_ONE_CYCLE_START = 1 / 25


def rate(config: ScheduleConfig, step: int, steps_per_epoch: int, epochs: int) -> float:
    """Return the learning rate of a step, counted from 0, as a share of the configured one.

    Example:
        >>> [round(rate(ScheduleConfig(name="cosine"), step, 1, 4), 3) for step in range(4)]
        [1.0, 0.854, 0.5, 0.146]
    """
    warmup = round(config.warmup * steps_per_epoch)
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(1, steps_per_epoch * epochs - warmup)
    if config.name == "cosine":
        return _ease(1.0, config.final, done)
    if config.name == "one-cycle":
        if done < config.peak:
            return _ease(_ONE_CYCLE_START, 1.0, done / config.peak)
        return _ease(1.0, config.final, (done - config.peak) / (1 - config.peak))
    if config.name == "restarts":
        # Each period begins anew at the highest rate (Loshchilov and Hutter, SGDR, 2017).
        period = config.period * steps_per_epoch
        return _ease(1.0, config.final, (step - warmup) % period / period)
    if config.name == "late-linear":
        start = (config.milestones or (0,))[0] * steps_per_epoch
        late = max(0.0, (step - start) / max(1, steps_per_epoch * epochs - start))
        return 1.0 - (1.0 - config.final) * late
    if config.name == "step":
        passed = sum(step >= milestone * steps_per_epoch for milestone in config.milestones)
        return float(config.gamma**passed)
    return 1.0


def _ease(start: float, end: float, share: float) -> float:
    """Return a point on half a cosine wave from start to end."""
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2
