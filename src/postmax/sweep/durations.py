"""How many seconds runs take: from finished runs, or measured."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Protocol

from postmax.progress import Stage, tell
from postmax.runs.folder import RunFolder
from postmax.runs.job import Job
from postmax.train.config import RunConfig
from postmax.train.timing import Cost, NotHere, needs_estimates

# How long measuring may take in all. Then kinds of work that are alike share their measurements.
_PATIENCE_SECONDS = 20.0


class Stopwatch(Protocol):
    """Measures runs by running a part of them, as the functions in `postmax.train.timing` do."""

    def measure_run(self, config: RunConfig) -> Cost:
        """Return the seconds of a run, in parts."""
        ...

    def measure_estimates(self, config: RunConfig) -> float:
        """Return the seconds of the estimates of noise that a run needs and that are not kept yet."""
        ...


class Clock:
    """Knows how many seconds a run takes: exactly from a run with other seeds, else roughly from a similar run.

    Args:
        done: Runs that are finished.
        store: The folder that holds the folders of the runs.

    Attributes:
        once: The seconds before the first run of a process.
        reasons: Why the duration of a run is not known, by run id.
    """

    def __init__(self, done: Iterable[Job], store: Path) -> None:
        self.once = 0.0
        self.reasons: dict[str, str] = {}
        self._same: dict[str, float] = {}
        self._epoch: dict[str, float] = {}
        self._start: dict[str, float] = {}
        self._estimates: dict[str, float] = {}
        for job in done:
            seconds = RunFolder(store / job.run_id).result()["seconds"]
            self._same[_same(job.config)] = seconds
            self._epoch[_similar(job.config)] = seconds / job.config.epochs

    def measure(self, jobs: Sequence[Job], stopwatch: Stopwatch) -> None:
        """Measure what no finished run tells: one job of each kind, until the time for measuring is over."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        kinds: dict[str, Job] = {}
        for job in jobs:
            kinds.setdefault(_similar(job.config), job)
        estimates = {_rows(job.config): job for job in reversed(jobs) if needs_estimates(job.config)}
        told, total = count(1), len(kinds) + len(estimates)
        measured: dict[str, list[Cost]] = {}
        # Kinds that are like no other come first: the others can do with what was measured for these.
        for kind, job in sorted(kinds.items(), key=_rank_of(kinds)):
            alike = measured.setdefault(_alike(job.config), [])
            enough = bool(alike) and (kind in self._epoch or time.monotonic() > deadline)
            try:
                cost = _mean(alike) if enough else stopwatch.measure_run(job.config)
            except NotHere as error:
                self._excuse(jobs, job.config, str(error))
            else:
                alike.append(cost)
                self.once = max(self.once, cost.once)
                self._start[kind] = cost.start
                self._epoch.setdefault(kind, cost.epoch)
            tell(Stage("measuring", next(told), total, "kinds of runs"))
        longest = 0.0
        for job in reversed(estimates.values()):
            if job.run_id not in self.reasons:
                late = time.monotonic() > deadline
                seconds = longest if late and longest else stopwatch.measure_estimates(job.config)
                longest = max(longest, seconds)
                # The first job that needs these estimates makes them, and the others find them.
                self._estimates[job.run_id] = seconds
            tell(Stage("measuring", next(told), total, "kinds of runs"))

    def _excuse(self, jobs: Sequence[Job], config: RunConfig, reason: str) -> None:
        for job in jobs:
            if job.config.data == config.data and _same(job.config) not in self._same:
                self.reasons[job.run_id] = reason

    def seconds(self, job: Job, share: float = 1.0) -> float | None:
        """Return how long a job takes, of whose training this share is left; None if that is not known."""
        kind = _similar(job.config)
        training = self._same.get(_same(job.config))
        if training is None and kind in self._epoch:
            training = self._epoch[kind] * job.config.epochs
        if training is None:
            return None
        return self._start.get(kind, 0.0) + self._estimates.get(job.run_id, 0.0) + share * training


def _rank_of(kinds: Mapping[str, Job]) -> Callable[[tuple[str, Job]], int]:
    """Return a function that gives the first kind of each group of alike kinds 0, the second 1, and so on."""
    seen: dict[str, int] = {}
    ranks = {}
    for kind, job in kinds.items():
        group = _alike(job.config)
        ranks[kind] = seen[group] = seen.get(group, -1) + 1
    return lambda item: ranks[item[0]]


def _mean(costs: Sequence[Cost]) -> Cost:
    return Cost(*(fmean(part) for part in zip(*costs, strict=True)))


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


def _alike(config: RunConfig) -> str:
    """Return a text that is equal for runs whose epochs take a similar time.

    The loss, the optimiser and the options of the method may differ: tables set options by the noise of a column.
    """
    content = json.loads(_similar(config))
    content["method"] = config.method.name
    return json.dumps({key: part for key, part in content.items() if key not in ("loss", "optimiser")})


def _rows(config: RunConfig) -> str:
    """Return a text that is equal for runs that need the same estimates of the noise."""
    content = config.model_dump(mode="json", include={"data", "noise", "noise_exact", "seeds"})
    return json.dumps(content, sort_keys=True)
