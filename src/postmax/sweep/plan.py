"""The plan of a sweep: what it would do, and how many seconds that would take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch

from postmax.runs.damage import damage
from postmax.runs.folder import RunFolder
from postmax.runs.job import Job
from postmax.sweep.cores import cores
from postmax.sweep.durations import Clock, Stopwatch


@dataclass(frozen=True)
class Plan:
    """What a sweep would do.

    Attributes:
        done: Jobs that the sweep would skip.
        resumed: Jobs that it would resume.
        new: Jobs that it would begin.
        failed: Jobs that failed before. They are run again only with `retry_failed`.
        expected: The seconds that each job will take, by run id, where that is known.
        workers: How many jobs run at once.
        once: The seconds before the first job begins: starting processes and reading data.
        reasons: Why the duration of a job is not known, by run id.
    """

    done: tuple[Job, ...]
    resumed: tuple[Job, ...]
    new: tuple[Job, ...]
    failed: tuple[Job, ...]
    expected: dict[str, float]
    workers: int = 1
    once: float = 0.0
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def unknown(self) -> int:
        """Return how many of the jobs to run have no known duration."""
        return len(self.resumed) + len(self.new) - len(self.expected)

    @property
    def seconds(self) -> float | None:
        """Return how long the sweep will take, or None if that is not known for every job."""
        if self.unknown:
            return None
        if not self.expected:
            return 0.0
        return self.once + max(sum(self.expected.values()) / max(1, self.workers), *self.expected.values())


def plan(
    jobs: Iterable[Job],
    store: str | Path,
    *,
    workers: int = 1,
    retry_failed: bool = False,
    measure: Stopwatch | None = None,
    start_up: float = 0.0,
) -> Plan:
    """Return what a sweep over these jobs would do.

    The duration of a run is taken from finished runs: first from one with the same configuration and other seeds, then
    from one that does the same work with other noise or other settings. If there is neither, it is measured. Measuring
    stops after some time; then a run counts as long as runs that differ only in their loss and optimiser.

    Args:
        jobs: The jobs, as for `postmax.sweep.sweep.sweep`.
        store: The folder that holds the folders of the runs.
        workers: How many jobs would run at once.
        retry_failed: Whether failed jobs count as new ones.
        measure: Measures runs by running a part of them. Without it, durations that no finished run tells are not
            known, and the time before the first epoch does not count.
        start_up: How many seconds a process takes to start.

    A damaged run counts as a new one, because it has to begin again.
    """
    store = Path(store).expanduser()
    states: dict[str, list[Job]] = {"done": [], "started": [], "new": [], "failed": []}
    for job in {job.run_id: job for job in jobs}.values():
        folder = RunFolder(store / job.run_id)
        states["new" if damage(folder) is not None else folder.state].append(job)
    if retry_failed:
        states["new"] += states["failed"]
        states["failed"] = []
    todo = [*states["started"], *states["new"]]
    clock = Clock(states["done"], store)
    if measure is not None and todo:
        with _threads_of(workers):
            clock.measure(todo, measure)
    shares = {job.run_id: _share_left(job, store) for job in states["started"]}
    expected = {job.run_id: clock.seconds(job, shares.get(job.run_id, 1.0)) for job in todo}
    return Plan(
        done=tuple(states["done"]),
        resumed=tuple(states["started"]),
        new=tuple(states["new"]),
        failed=tuple(states["failed"]),
        expected={run_id: seconds for run_id, seconds in expected.items() if seconds is not None},
        workers=workers,
        # The command starts, and then its workers start.
        once=clock.once + start_up * (2 if workers > 1 else 1),
        reasons=clock.reasons,
    )


@contextmanager
def _threads_of(workers: int) -> Iterator[None]:
    """Measure with as many threads as each of several workers will have."""
    threads = torch.get_num_threads()
    if workers > 1:
        torch.set_num_threads(max(1, cores() // workers))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _share_left(job: Job, store: Path) -> float:
    """Return the share of the epochs that is left, according to the recorded epochs.

    It is a little too small, because a run continues from its last checkpoint and repeats the epochs since then.
    """
    try:
        records = RunFolder(store / job.run_id).metrics()
        return 1 - max((record["epoch"] for record in records), default=0) / job.config.epochs
    except (ValueError, KeyError, TypeError):
        # The records are damaged. Damage does not make the run shorter.
        return 1.0
