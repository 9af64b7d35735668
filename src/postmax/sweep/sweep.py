"""Running jobs: what is done is skipped, what was killed goes on, and nothing is run twice."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from postmax.errors import DataError
from postmax.runs.job import Job
from postmax.sweep.backlog import Backlog
from postmax.sweep.cores import cores
from postmax.sweep.events import Event, Outcome, Step, SweepError, SweepReport, Watcher
from postmax.sweep.pool import Pool, StartError
from postmax.sweep.worker import Execute, attempt, train


def sweep(
    jobs: Iterable[Job],
    store: str | Path,
    *,
    workers: int = 1,
    retry_failed: bool = False,
    watch: Watcher | None = None,
    threads: int | None = None,
    execute: Execute = train,
    patience: float = 1.0,
) -> SweepReport:
    """Run jobs, each in its folder `store/<run id>`, until every one of them is done or has failed.

    Any number of sweeps may share a store: a run that another process has is put aside, and taken over if that process
    ends without finishing it. Killed at any moment, the same call goes on where it was.

    Args:
        jobs: What to run, first things first.
        store: The folder of run folders.
        workers: Processes at once; 0 or 1 is this process.
        retry_failed: Run jobs again that had failed before.
        watch: Told what happens to each job; see `postmax.cli.progress`.
        threads: Of torch, in each worker process; an equal share of the cores if None.
        execute: What runs a configuration. Worker processes import it by name.
        patience: Seconds until a run that another process has is looked at again.

    Raises:
        SweepError: If something is wrong that every job would meet, or, once all others are finished, if the process
            of a job died, its memory was full or its folder is damaged. It names the folders; its `report` says what
            became of the jobs.
        KeyboardInterrupt: After Ctrl-C, when all workers have ended.
    """
    store = Path(store).expanduser()
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{store} cannot be the folder of the runs: {error.strerror or error}.") from error
    backlog = Backlog(jobs, store, retry_failed=retry_failed, patience=patience, watch=watch)
    if workers > 1:
        _run_in_processes(backlog, workers, threads or max(1, cores() // workers), execute)
    else:
        _run_here(backlog, execute)
    return backlog.finish()


def _run_here(backlog: Backlog, execute: Execute) -> None:
    while len(backlog):
        taken = backlog.take()
        if taken is None:
            time.sleep(0.1)
            continue
        job, task = taken

        def progress(step: Step, job: Job = job) -> None:
            backlog.tell(Event("step", job, step))

        backlog.settle(job, attempt(task, execute, progress))


def _run_in_processes(backlog: Backlog, workers: int, threads: int, execute: Execute) -> None:
    with Pool(workers, execute, threads) as pool:
        while len(backlog) or pool.busy:
            while pool.free and (taken := backlog.take()) is not None:
                pool.submit(*taken)
            try:
                for job, message in pool.messages(timeout=0.2):
                    if isinstance(message, Outcome):
                        backlog.settle(job, message)
                    else:
                        backlog.tell(Event("step", job, message))
            except StartError as error:
                raise SweepError(str(error), backlog.report) from None
