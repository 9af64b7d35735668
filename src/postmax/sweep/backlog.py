"""The jobs of a sweep that are left: some are done, some have failed, and some are run by other processes."""

from __future__ import annotations

import shlex
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from postmax import plugins
from postmax.runs.checkpoint import DamagedRun
from postmax.runs.damage import damage
from postmax.runs.folder import RunFolder
from postmax.runs.job import Job
from postmax.sweep.attempt import Task
from postmax.sweep.events import Event, Outcome, SweepError, SweepReport, Watcher


class Backlog:
    """The jobs that are left.

    The state of every job is kept in its folder and never here alone, because other sweeps work on the same folders and
    this one may be killed at any moment.

    Args:
        jobs: The jobs, in the order in which they should run.
        store: The folder that holds the folders of the runs.
        retry_failed: Whether to run jobs again that failed before.
        patience: If another process works on a run, try again after this many seconds.
        watch: A function that gets the events.
    """

    def __init__(
        self, jobs: Iterable[Job], store: Path, *, retry_failed: bool, patience: float, watch: Watcher | None
    ) -> None:
        self.report = SweepReport()
        self._store = store
        self._patience = patience
        self._watch = watch
        self._waiting = deque({job.run_id: job for job in jobs}.values())
        self._aside: deque[tuple[float, Job]] = deque()
        self._retry = {job.run_id for job in self._waiting} if retry_failed else set()

    def __len__(self) -> int:
        """Return how many jobs are neither settled nor running."""
        return len(self._waiting) + len(self._aside)

    def take(self) -> tuple[Job, Task] | None:
        """Return a job to run now and its task, or None if other processes work on all jobs that are left."""
        while (job := self._pop()) is not None:
            folder = RunFolder(self._store / job.run_id)
            state = folder.state
            if (reason := damage(folder)) is not None:
                self.settle(job, Outcome("damaged", reason))
            elif state == "done":
                self.report.skipped.append(job.run_id)
                self.tell(Event("skipped", job))
            elif state == "failed" and job.run_id not in self._retry:
                self.settle(job, _earlier_failure(folder))
            else:
                # A failed job is tried again once only. If another sweep tries it now, that attempt counts.
                self._retry.discard(job.run_id)
                self.tell(Event("started", job))
                return job, Task(job.config, folder.path, again=state == "failed", plugins=plugins.loaded())
        return None

    def settle(self, job: Job, outcome: Outcome) -> None:
        """Record how an attempt to run a job ended.

        Raises:
            SweepError: If something is wrong that the next job would meet too.
        """
        if outcome.ending == "died" and RunFolder(self._store / job.run_id).state == "done":
            outcome = Outcome("done")
        reason = outcome.reason
        if outcome.ending == "done":
            self.report.done.append(job.run_id)
        elif outcome.ending == "failed":
            self.report.failed[job.run_id] = reason
        elif outcome.ending == "died":
            self.report.died[job.run_id] = reason
        elif outcome.ending == "damaged":
            self.report.damaged[job.run_id] = reason
        elif outcome.ending == "busy":
            self._aside.append((time.monotonic() + self._patience, job))
        self.tell(Event(outcome.ending, job, reason=reason))
        if outcome.ending == "error":
            error = SweepError(
                f"{job.label}: {reason} Its folder is {self._store / job.run_id}; finished runs stay, and the same "
                "command continues from there.",
                self.report,
            )
            if outcome.trace:
                error.add_note(outcome.trace)
            raise error

    def tell(self, event: Event) -> None:
        """Pass an event on to the watcher."""
        if self._watch is not None:
            self._watch(event)

    def finish(self) -> SweepReport:
        """Return the report, when no job is left.

        Raises:
            SweepError: If the process of a job died, or the folder of a job is damaged.
        """
        parts = []
        if died := self.report.died:
            stopped = "1 run stopped before it was" if len(died) == 1 else f"{len(died)} runs stopped before they were"
            parts.append(f"{stopped} done (the others are finished):")
            parts += [f"  {self._store / run_id}: {reason}" for run_id, reason in died.items()]
            parts.append("The same command resumes them; with fewer workers they have more memory.")
        if damaged := self.report.damaged:
            parts.append(f"{len(damaged)} of the runs {'is' if len(damaged) == 1 else 'are'} damaged:")
            for run_id, reason in damaged.items():
                folder = self._store / run_id
                parts.append(f"  {folder}: {reason}")
                parts.append(f"    To begin it again: postmax resume {shlex.quote(str(folder))} --restart")
        if parts:
            raise SweepError("\n".join(parts), self.report)
        return self.report

    def _pop(self) -> Job | None:
        if self._waiting:
            return self._waiting.popleft()
        if self._aside and self._aside[0][0] <= time.monotonic():
            return self._aside.popleft()[1]
        return None


def _earlier_failure(folder: RunFolder) -> Outcome:
    """Return how a run ended that failed before. The file that says why may be damaged."""
    try:
        return Outcome("failed", folder.failure() or "it failed before")
    except DamagedRun as error:
        return Outcome("damaged", str(error))
