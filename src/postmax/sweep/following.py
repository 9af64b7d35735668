"""How far running jobs are, read from their folders."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from postmax.runs import Progress
from postmax.runs.job import Job
from postmax.sweep.events import Event, Watcher
from postmax.train.records import EpochRecord

Clock = Callable[[], float]


class Following:
    """Follows the jobs that are running now, and tells a watcher how far they are.

    Args:
        watch: The function that gets the events.
        clock: Seconds that only grow.
    """

    def __init__(self, watch: Watcher, clock: Clock = time.monotonic) -> None:
        self._watch = watch
        self._clock = clock
        self._running: dict[str, tuple[Job, _Metrics]] = {}

    def begin(self, job: Job, folder: Path) -> None:
        """Follow a job that begins now."""
        self._running[job.run_id] = (job, _Metrics(folder / "metrics.jsonl", job.config.epochs, self._clock))

    def end(self, job: Job, *, look: bool) -> None:
        """Follow a job no longer, after a last look at its folder if `look` says so."""
        if look:
            self._look(*self._running[job.run_id])
        del self._running[job.run_id]

    def look(self) -> None:
        """Look at the folders of all running jobs."""
        for job, metrics in self._running.values():
            self._look(job, metrics)

    def _look(self, job: Job, metrics: _Metrics) -> None:
        if (progress := metrics.progress()) is not None:
            self._watch(Event("progress", job, progress))


class _Metrics:
    """The file metrics.jsonl of one run, of which each look reads only the new lines.

    A run that begins or is resumed replaces the file, so lines that are there before count only if they are written
    again.
    """

    def __init__(self, path: Path, epochs: int, clock: Clock) -> None:
        self._path, self._epochs, self._clock = path, epochs, clock
        self._file, self._offset = self._state()
        self._latest: list[EpochRecord] = []
        self._first: tuple[int, float] | None = None

    def progress(self) -> Progress | None:
        """Return how far the run is, or None if nothing was written since the last look."""
        file, size = self._state()
        if file != self._file or size < self._offset:
            self._file, self._offset, self._latest, self._first = file, 0, [], None
        if size == self._offset:
            return None
        try:
            return self._summary() if self._read() else None
        except (OSError, ValueError, TypeError, KeyError):
            # The file was deleted or replaced while it was read, or it is damaged, which the run itself reports.
            self._offset, self._latest = size, []
            return None

    def _state(self) -> tuple[int, int]:
        """Return which file is there now, and its size in bytes."""
        try:
            found = self._path.stat()
        except OSError:
            return 0, 0
        return found.st_ino, found.st_size

    def _read(self) -> bool:
        """Read the new lines, and return whether there were any. A line without its end is left for the next look."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        complete = text[: text.rfind(b"\n") + 1]
        for line in complete.splitlines():
            record: EpochRecord = json.loads(line)
            if self._latest and record["epoch"] != self._latest[-1]["epoch"]:
                self._latest = []
            self._latest.append(record)
        self._offset += len(complete)
        return bool(complete)

    def _summary(self) -> Progress:
        epoch, now = self._latest[-1]["epoch"], self._clock()
        if self._first is None:
            self._first = (epoch, now)
        since, begin = self._first
        # The time between two looks includes the evaluations, which the recorded seconds of an epoch do not.
        seconds = (now - begin) / (epoch - since) if epoch > since else self._latest[-1]["seconds"]
        accuracies = [record["test_accuracy"] for record in self._latest if "test_accuracy" in record]
        return Progress(
            epoch=epoch,
            epochs=self._epochs,
            loss=sum(record["loss"] for record in self._latest) / len(self._latest),
            accuracy=sum(accuracies) / len(accuracies) if accuracies else None,
            seconds_left=seconds * (self._epochs - epoch),
        )
