"""A job: one run that somebody wants to have, and the name a person knows it by."""

from __future__ import annotations

from dataclasses import dataclass

from postmax.train.config import RunConfig


@dataclass(frozen=True)
class Job:
    """One run to be done.

    Attributes:
        config: The configuration of the run.
        label: A short name for people, shown in progress lines and messages.
    """

    config: RunConfig
    label: str

    @property
    def run_id(self) -> str:
        """The name of the run's folder."""
        return self.config.run_id
