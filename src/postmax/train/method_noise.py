"""The noise of the labels, for methods that must know it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from postmax.data import Dataset
from postmax.estimation import TransitionEstimate
from postmax.train.config import RunConfig
from postmax.train.estimates import estimated_noise, rows_to_estimate_from
from postmax.train.prepare import SeedData, noise_to_remove
from postmax.transition import Transition

Estimate = Callable[[Dataset], TransitionEstimate]


def estimate_from_rows(train: Dataset) -> TransitionEstimate:
    """Return the noise of training labels, estimated from the training rows alone, and kept for the next run."""
    return estimated_noise(train, rows_to_estimate_from(train))


class NoiseAnswers(Protocol):
    """Answers what a method asks about the noise; see `postmax.methods.Setup`."""

    def estimate(self) -> TransitionEstimate:
        """Return the noise, estimated from the training rows alone."""
        ...

    def transition(self) -> Transition:
        """Return the noise that the settings name."""
        ...


class MethodNoise:
    """Answers what a method asks about the noise of one seed, and remembers what it estimated.

    Args:
        config: The configuration of the run.
        part: The rows of the seed.
        estimate: Estimates the noise of training rows.
    """

    def __init__(self, config: RunConfig, part: SeedData, estimate: Estimate) -> None:
        self._config, self._part, self._make = config, part, estimate
        self._found = part.estimate

    def estimate(self) -> TransitionEstimate:
        """Return the noise, estimated from the training rows alone; see `postmax.methods.Setup`."""
        if self._found is None:
            self._found = self._make(replace(self._part.train, clean_labels=None))
        return self._found

    def transition(self) -> Transition:
        """Return the noise that the configuration names; see `postmax.methods.Setup`."""
        if self._config.transition == "estimated":
            return self.estimate().transition
        return noise_to_remove(self._config, self._part.train, f"method={self._config.method.name}")

    def record(self) -> SeedData:
        """Return the rows of the seed with the estimate, if the method asked for one."""
        return replace(self._part, estimate=self._found)
