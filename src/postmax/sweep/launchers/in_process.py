"""A launcher that runs jobs in this process, one after another."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Self

from postmax.runs import execute as execute_run
from postmax.sweep.attempt import Execute, Task, attempt
from postmax.sweep.events import Outcome


class InProcess:
    """Runs each job in the thread that submits it. `submit` returns when the job has ended.

    Args:
        execute: The function that runs a configuration.
        after_epoch: A function without arguments that is called after every epoch. The sweep uses it to look at the
            folder of the run, because it cannot do anything else until the job has ended.
    """

    slots = 1

    def __init__(self, execute: Execute = execute_run, *, after_epoch: Callable[[], None] | None = None) -> None:
        self._execute = execute
        self._after_epoch = after_epoch

    def submit(self, task: Task) -> Future[Outcome]:
        """Run a job to its end. An interruption (Ctrl-C) is raised."""
        after_epoch = self._after_epoch
        progress = None if after_epoch is None else lambda _: after_epoch()
        future: Future[Outcome] = Future()
        future.set_result(attempt(task, self._execute, progress=progress))
        return future

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass
