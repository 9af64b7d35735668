"""Run many jobs: skip those that are done, resume those that were killed, and run nothing twice."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path

from postmax.errors import DataError
from postmax.runs import execute as execute_run
from postmax.runs.job import Job
from postmax.sweep.attempt import Execute
from postmax.sweep.backlog import Backlog
from postmax.sweep.events import Outcome, SweepError, SweepReport, Watcher
from postmax.sweep.following import Following
from postmax.sweep.launchers import InProcess, Launcher, LauncherError, LocalProcesses
from postmax.sweep.shared import make_shared

_SECONDS_BETWEEN_LOOKS = 0.2


def sweep(
    jobs: Iterable[Job],
    store: str | Path,
    *,
    workers: int = 1,
    retry_failed: bool = False,
    watch: Watcher | None = None,
    threads: int | None = None,
    execute: Execute = execute_run,
    patience: float = 1.0,
    launcher: Launcher | None = None,
) -> SweepReport:
    """Run jobs, each in its folder `store/<run id>`, until every job is done or has failed.

    Any number of sweeps may share a store. A run that another process works on is put aside, and taken over if that
    process ends without finishing it. A sweep that was killed continues when the same call is made again. Worker
    processes load the same plugins as this process, see `postmax.plugins.loaded`.

    Args:
        jobs: The jobs, in the order in which they should run.
        store: The folder that holds the folders of the runs.
        workers: How many processes run jobs at once. With 0 or 1, this process runs them.
        retry_failed: Whether to run jobs again that failed before.
        watch: A function that gets an `Event` whenever something happens to a job; see `postmax.cli.progress`.
        threads: The number of torch threads in each worker process; by default an equal share of the cores.
        execute: The function that runs a configuration. Worker processes import it by its name.
        patience: If another process works on a run, try again after this many seconds.
        launcher: Who runs the jobs, in place of `workers`, `threads` and `execute`.

    Raises:
        SweepError: If something is wrong that every job would meet. If the process of a job died, its memory was full
            or its folder is damaged, the other jobs are finished first. The message names the folders, and `report`
            says what became of the jobs.
        KeyboardInterrupt: After Ctrl-C, when all workers have ended.
    """
    store = Path(store).expanduser()
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{store} cannot be the folder of the runs: {error.strerror or error}.") from error
    jobs = list(jobs)
    backlog = Backlog(jobs, store, retry_failed=retry_failed, patience=patience, watch=watch)
    following = Following(backlog.tell)
    if launcher is None and workers > 1:
        launcher = LocalProcesses(workers, execute, threads=threads)
    elif launcher is None:
        launcher = InProcess(execute, after_epoch=following.look)
    if launcher.slots > 1:
        make_shared(jobs, store)
    with launcher:
        _run(backlog, following, launcher)
    return backlog.finish()


def _run(backlog: Backlog, following: Following, launcher: Launcher) -> None:
    running: dict[Future[Outcome], Job] = {}
    while len(backlog) or running:
        while len(running) < launcher.slots and (taken := backlog.take()) is not None:
            job, task = taken
            following.begin(job, task.folder)
            running[launcher.submit(task)] = job
        if not running:
            # Other processes work on all jobs that are left.
            time.sleep(_SECONDS_BETWEEN_LOOKS / 2)
            continue
        ended, _ = wait(running, _SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED)
        following.look()
        for future in ended:
            job = running.pop(future)
            try:
                outcome = future.result()
            except LauncherError as error:
                raise SweepError(str(error), backlog.report) from None
            following.end(job, look=outcome.ending != "busy")
            backlog.settle(job, outcome)
