"""What a sweep would do and how long that would take, before it does anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from postmax.runs.damage import damage
from postmax.runs.folder import RunFolder
from postmax.runs.job import Job
from postmax.train.config import RunConfig

Measure = Callable[[RunConfig], float]


@dataclass(frozen=True)
class Plan:
    """What a sweep would do.

    Attributes:
        done: Jobs that would be skipped.
        resumed: Jobs that would go on where they were.
        new: Jobs that would begin.
        failed: Jobs that failed before, and are run again only when asked for.
        expected: Seconds that each job to be run will take, by run id, where that is known.
        workers: How many run at once.
    """

    done: tuple[Job, ...]
    resumed: tuple[Job, ...]
    new: tuple[Job, ...]
    failed: tuple[Job, ...]
    expected: dict[str, float]
    workers: int = 1

    @property
    def unknown(self) -> int:
        """How many jobs are to be run nobody knows how long."""
        return len(self.resumed) + len(self.new) - len(self.expected)

    @property
    def seconds(self) -> float | None:
        """How long it will take; None if that is not known of every job."""
        if self.unknown:
            return None
        return max(sum(self.expected.values()) / max(1, self.workers), max(self.expected.values(), default=0.0))


def plan(
    jobs: Iterable[Job],
    store: str | Path,
    *,
    workers: int = 1,
    retry_failed: bool = False,
    measure: Measure | None = None,
) -> Plan:
    """What a sweep over these jobs would do.

    The time of a run is taken from finished ones: of the same configuration with other seeds, else of the same work in
    another noise or loss, else it is measured.

    Args:
        jobs: As for `postmax.sweep.sweep.sweep`.
        store: The folder of run folders.
        workers: How many would run at once.
        retry_failed: Count failed jobs as new ones.
        measure: Tells the seconds of an epoch by running a part of one; asked once for each kind of work.

    A damaged run counts as a new one: it has to begin again.
    """
    store = Path(store).expanduser()
    states: dict[str, list[Job]] = {"done": [], "started": [], "new": [], "failed": []}
    for job in {job.run_id: job for job in jobs}.values():
        folder = RunFolder(store / job.run_id)
        states["new" if damage(folder) is not None else folder.state].append(job)
    if retry_failed:
        states["new"] += states["failed"]
        states["failed"] = []
    clock = _Clock(states["done"], store, measure)
    expected = {job.run_id: clock.seconds(job) for job in states["new"]}
    expected |= {job.run_id: clock.seconds(job, _share_left(job, store)) for job in states["started"]}
    return Plan(
        done=tuple(states["done"]),
        resumed=tuple(states["started"]),
        new=tuple(states["new"]),
        failed=tuple(states["failed"]),
        expected={run_id: seconds for run_id, seconds in expected.items() if seconds is not None},
        workers=workers,
    )


class _Clock:
    """Seconds of a run by what it does, first exactly, then roughly."""

    def __init__(self, done: Iterable[Job], store: Path, measure: Measure | None) -> None:
        self._measure = measure
        self._same: dict[str, float] = {}
        self._similar: dict[str, float] = {}
        for job in done:
            seconds = RunFolder(store / job.run_id).result()["seconds"]
            self._same[_same(job.config)] = seconds
            self._similar[_similar(job.config)] = seconds / job.config.epochs

    def seconds(self, job: Job, share: float = 1.0) -> float | None:
        if (known := self._same.get(_same(job.config))) is not None:
            return share * known
        kind = _similar(job.config)
        if kind not in self._similar and self._measure is not None:
            self._similar[kind] = self._measure(job.config)
        per_epoch = self._similar.get(kind)
        return None if per_epoch is None else share * per_epoch * job.config.epochs


def _same(config: RunConfig) -> str:
    """Equal for runs that differ in their seeds, but not in how many there are."""
    content = config.model_dump(mode="json")
    return json.dumps({**content, "seeds": len(config.seeds)}, sort_keys=True)


def _similar(config: RunConfig) -> str:
    """Equal for runs whose steps cost about the same."""
    content = config.model_dump(mode="json")
    for key in ("noise", "noise_exact", "schedule", "epochs", "selection", "save_model", "transition"):
        del content[key]
    content["loss"] = config.loss.name
    content["optimiser"] = config.optimiser.name
    return json.dumps({**content, "seeds": len(config.seeds)}, sort_keys=True)


def _share_left(job: Job, store: Path) -> float:
    """From the epochs that were recorded; a little is lost, because a run goes on from its last checkpoint."""
    try:
        records = RunFolder(store / job.run_id).metrics()
        return 1 - max((record["epoch"] for record in records), default=0) / job.config.epochs
    except (ValueError, KeyError, TypeError):
        # Damaged: whatever becomes of the run, it is not shorter for that.
        return 1.0
