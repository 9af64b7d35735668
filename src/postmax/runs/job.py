"""A job: one run that somebody wants to have, and the name a person knows it by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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

    @cached_property
    def run_id(self) -> str:
        """The name of the run's folder. It is computed once: the page of a table asks for it many times."""
        return self.config.run_id
