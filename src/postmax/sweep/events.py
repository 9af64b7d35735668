"""The events that a sweep tells its watchers, and the report that it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from postmax.errors import PostmaxError
from postmax.runs import Progress
from postmax.runs.job import Job

Ending = Literal["done", "failed", "busy", "died", "damaged", "error"]


@dataclass(frozen=True)
class Outcome:
    """How one attempt to run a job ended.

    Attributes:
        ending: One of these words:
            "done": the run is finished.
            "failed": the run diverged and recorded the reason in its folder.
            "busy": another process works on the run.
            "died": the process ended, or its memory was full. The run can be resumed.
            "damaged": files in the folder of the run cannot be read.
            "error": something is wrong that the next job would meet too.
        reason: The reason in words. It is empty if the run is done.
        trace: The traceback of an unexpected error.
    """

    ending: Ending
    reason: str = ""
    trace: str = ""


@dataclass(frozen=True)
class Event:
    """Something that happened to a job.

    Attributes:
        kind: "skipped" if the job was done before, or by another sweep; "started"; "progress"; or the ending of an
            attempt, see `Outcome`.
        job: The job.
        progress: How far the run is, if the kind is "progress".
        reason: Why the attempt did not succeed.
    """

    kind: Literal["skipped", "started", "progress"] | Ending
    job: Job
    progress: Progress | None = None
    reason: str = ""


Watcher = Callable[[Event], None]


@dataclass
class SweepReport:
    """What became of the jobs, by run id.

    Attributes:
        skipped: Jobs that were done before this sweep, or by another sweep in the meantime.
        done: Jobs that this sweep finished.
        failed: Jobs that diverged, with the reason. Running them again gives the same result.
        died: Jobs whose process ended or whose memory was full, with the reason. They can be resumed.
        damaged: Jobs whose folder cannot be read, with the reason. They must begin again.
    """

    skipped: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    died: dict[str, str] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)


class SweepError(PostmaxError):
    """A sweep could not finish all of its jobs. Finished runs stay, and the same sweep can be started again.

    Attributes:
        report: What became of the jobs until then.
    """

    def __init__(self, message: str, report: SweepReport) -> None:
        super().__init__(message)
        self.report = report
