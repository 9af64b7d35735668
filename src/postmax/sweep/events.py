"""What a sweep tells those who watch it, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from postmax.errors import InputError
from postmax.runs.job import Job

Ending = Literal["done", "failed", "busy", "died", "damaged", "error"]


class Step(Protocol):
    """How far a run is: `postmax.runs.execution.Progress`."""

    @property
    def epoch(self) -> int: ...  # noqa: D102
    @property
    def epochs(self) -> int: ...  # noqa: D102
    @property
    def loss(self) -> float: ...  # noqa: D102
    @property
    def accuracy(self) -> float | None: ...  # noqa: D102
    @property
    def seconds_left(self) -> float: ...  # noqa: D102


@dataclass(frozen=True)
class Outcome:
    """How an attempt to run a job ended.

    Attributes:
        ending: "done"; "failed", the run itself recorded why; "busy", another process has it; "died", its process
            ended or its memory was full; "damaged", its folder cannot be read; "error", something is wrong that the
            next job would meet too.
        reason: In words, unless it is done.
        trace: Where an error came from, if that was another process.
    """

    ending: Ending
    reason: str = ""
    trace: str = ""


@dataclass(frozen=True)
class Event:
    """Something that happened to a job.

    Attributes:
        kind: "skipped", done before or by another sweep; "started"; "step", with how far it is; or how
            an attempt ended.
        job: The job.
        step: How far it is.
        reason: Why it failed.
    """

    kind: Literal["skipped", "started", "step"] | Ending
    job: Job
    step: Step | None = None
    reason: str = ""


Watcher = Callable[[Event], None]


@dataclass
class SweepReport:
    """What became of the jobs, by run id.

    Attributes:
        skipped: Done before, or by another sweep in the meantime.
        done: Done by this sweep.
        failed: Diverged, with the reason: their tables have a hole, and running them again would give the same.
        died: Their process ended or their memory was full, with the reason; they can be resumed.
        damaged: Their folder cannot be read, with the reason; they have to begin again.
    """

    skipped: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    died: dict[str, str] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)


class SweepError(InputError):
    """A sweep that could not do all of its work. What is finished stays, and the same sweep goes on from there.

    Attributes:
        report: What became of the jobs until then.
    """

    def __init__(self, message: str, report: SweepReport) -> None:
        super().__init__(message)
        self.report = report
