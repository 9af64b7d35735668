"""The plan of a sweep: what it would do, and how many seconds that would take."""

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
        done: Jobs that the sweep would skip.
        resumed: Jobs that it would resume.
        new: Jobs that it would begin.
        failed: Jobs that failed before. They are run again only with `retry_failed`.
        expected: The seconds that each job will take, by run id, where that is known.
        workers: How many jobs run at once.
    """

    done: tuple[Job, ...]
    resumed: tuple[Job, ...]
    new: tuple[Job, ...]
    failed: tuple[Job, ...]
    expected: dict[str, float]
    workers: int = 1

    @property
    def unknown(self) -> int:
        """Return how many of the jobs to run have no known duration."""
        return len(self.resumed) + len(self.new) - len(self.expected)

    @property
    def seconds(self) -> float | None:
        """Return how long the sweep will take, or None if that is not known for every job."""
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
    """Return what a sweep over these jobs would do.

    The duration of a run is taken from finished runs: first from one with the same configuration and other seeds, then
    from one that does the same work with other noise or other settings. If there is neither, it is measured.

    Args:
        jobs: The jobs, as for `postmax.sweep.sweep.sweep`.
        store: The folder that holds the folders of the runs.
        workers: How many jobs would run at once.
        retry_failed: Whether failed jobs count as new ones.
        measure: A function that measures the seconds of an epoch by running a part of it. It is called once for each
            kind of work. Without it, such durations are not known.

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
    """Knows how many seconds a run takes: exactly from a run with other seeds, else roughly from a similar run."""

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
    """Return a text that is equal for runs which differ only in which seeds they have, not in how many."""
    content = config.model_dump(mode="json")
    return json.dumps({**content, "seeds": len(config.seeds)}, sort_keys=True)


def _similar(config: RunConfig) -> str:
    """Return a text that is equal for runs whose epochs take about the same time."""
    content = config.model_dump(mode="json")
    for key in ("noise", "noise_exact", "schedule", "epochs", "selection", "save_model", "transition"):
        del content[key]
    content["loss"] = config.loss.name
    content["optimiser"] = config.optimiser.name
    return json.dumps({**content, "seeds": len(config.seeds)}, sort_keys=True)


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
