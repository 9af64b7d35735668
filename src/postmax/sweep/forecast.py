"""A forecast of how long a sweep will still take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping

from postmax.runs.job import Job
from postmax.sweep.events import Event


class Forecast:
    """Watches a sweep and estimates how many seconds are left.

    Args:
        jobs: All jobs of the sweep.
        workers: How many jobs run at once.
        expected: The seconds that a run takes, by run id, where they are known; see `postmax.sweep.plan`.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        jobs: Iterable[Job],
        workers: int = 1,
        expected: Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._waiting = {job.run_id for job in jobs}
        self.total = len(self._waiting)
        self._workers = max(1, workers)
        self._expected = dict(expected or {})
        self._clock = clock
        self._started: dict[str, float] = {}
        self._ends: dict[str, float] = {}
        self._lengths: list[float] = []

    @property
    def settled(self) -> int:
        """Return how many jobs have ended, successfully or not."""
        return self.total - len(self._waiting) - len(self._started)

    def __call__(self, event: Event) -> None:
        """Take an event into account."""
        run_id, now = event.job.run_id, self._clock()
        if event.kind == "progress":
            if event.progress is not None:
                self._ends[run_id] = now + event.progress.seconds_left
            return
        self._waiting.discard(run_id)
        began = self._started.pop(run_id, None)
        self._ends.pop(run_id, None)
        if event.kind == "started":
            self._started[run_id] = now
        elif event.kind == "busy":
            self._waiting.add(run_id)
        elif event.kind == "done" and began is not None:
            self._lengths.append(now - began)

    def seconds_left(self) -> float | None:
        """Return the seconds until all jobs have ended, or None while that cannot be estimated."""
        now = self._clock()
        running = [self._ends[run_id] - now for run_id in self._started if run_id in self._ends]
        lengths = self._lengths or [self._ends[run_id] - self._started[run_id] for run_id in self._ends]
        usual = statistics.fmean(lengths) if lengths else None
        silent = [run_id for run_id in self._started if run_id not in self._ends]
        waiting = [self._expected.get(run_id, usual) for run_id in (*self._waiting, *silent)]
        known = [seconds for seconds in waiting if seconds is not None]
        if len(known) < len(waiting):
            return None
        ahead = [max(0.0, seconds) for seconds in (*running, *known)]
        # One run cannot be divided among several workers.
        return max(sum(ahead) / self._workers, max(ahead, default=0.0))
