"""Stop a training run whose loss is NaN, infinite, thousands of times what it was at the start, or stuck."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from postmax.errors import DivergedError, InputError
from postmax.losses import Loss
from postmax.train.config import RunConfig

_EXPLODED = 1e4
_STUCK_WITHIN = 1e-5
# On a GPU, reading a loss waits for the device. So losses are read in groups there.
_GROUP = 20


class LossWatch:
    """Looks at the loss of each step and raises `DivergedError` when the training has diverged.

    Args:
        config: The configuration of the run. The error message suggests settings to change.
        loss: The loss of the run. It knows what else to suggest.
        steps: How many steps an epoch has; for the message.
    """

    def __init__(self, config: RunConfig, loss: Loss, steps: int) -> None:
        self._config, self._loss, self._steps = config, loss, steps
        self.first_loss: float | None = None
        """The size of the loss in the first step, at least 1; part of a checkpoint."""
        self._epoch = 0
        self._losses: list[Tensor] = []

    def start(self, epoch: int) -> None:
        """Begin an epoch, counted from 0."""
        self._epoch, self._losses = epoch, []

    def add(self, losses: Tensor) -> None:
        """Take the losses (S,) of a step, one for each seed.

        Raises:
            DivergedError: If one of them is not finite, or has exploded.
        """
        self._losses.append(losses.detach())
        place = len(self._losses) - 1
        if losses.device.type == "cpu":
            self._look([losses.tolist()], place)
        elif place % _GROUP == _GROUP - 1:
            self._look_at_group(place)

    def finish(self) -> list[float]:
        """End the epoch and return the mean loss of each seed.

        Raises:
            DivergedError: If one of the losses that were not looked at yet is not finite, or has exploded; or if each
                loss of a seed has the value from which nothing can be learnt.
            InputError: If there was no step.
        """
        if not self._losses:
            raise InputError(f"the method {self._config.method.name} made no step in epoch {self._epoch + 1}.")
        if self._losses[-1].device.type != "cpu":
            self._look_at_group(len(self._losses) - 1)
        losses = torch.stack(self._losses)
        self._look_for_stuck(losses)
        means: list[float] = losses.mean(0).tolist()
        return means

    def diverged(self, what: str, place: int | None = None) -> DivergedError:
        """Return the error that says what happened, in which step, and what to try."""
        config, place = self._config, len(self._losses) if place is None else place
        hints = [f"a smaller learning rate (optimiser.lr is {config.optimiser.lr:g})"]
        if config.optimiser.clip_norm is None:
            hints.append("optimiser.clip_norm=1")
        of = f" of {self._steps}" if place < self._steps else ""
        return DivergedError(
            f"training diverged in epoch {self._epoch + 1}, batch {place + 1}{of}: "
            f"{what.rstrip('.')}. Try {' or '.join(hints)}. {self._current_loss.when_it_diverges}".rstrip()
        )

    @property
    def is_first_step(self) -> bool:
        """Whether no step of the whole training has been made yet."""
        return self.first_loss is None and not self._losses

    @property
    def _current_loss(self) -> Loss:
        return self._loss.at(self._epoch / self._config.epochs)

    def _look_for_stuck(self, losses: Tensor) -> None:
        stuck = self._current_loss.stuck_at
        if stuck is None:
            return
        for seed, is_stuck in zip(self._config.seeds, ((losses - stuck).abs() < _STUCK_WITHIN).all(0), strict=True):
            if is_stuck:
                what = f"the loss of seed {seed} was {stuck:.4g} in every batch, where its gradient is 0"
                raise self.diverged(what, len(self._losses) - 1)

    def _look_at_group(self, place: int) -> None:
        start = place - place % _GROUP
        self._look(torch.stack(self._losses[start:]).tolist(), start)

    def _look(self, found: Sequence[Sequence[float]], start: int) -> None:
        for place, values in enumerate(found, start):
            if self.first_loss is None:
                self.first_loss = max(1.0, *(abs(value) for value in values if math.isfinite(value)), 1.0)
            for seed, value in zip(self._config.seeds, values, strict=True):
                if not abs(value) <= _EXPLODED * self.first_loss:  # the comparison is also false for NaN
                    raise self.diverged(f"the loss of seed {seed} is {value:.4g}", place)
