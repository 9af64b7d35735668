"""The interface between a sweep and whoever runs its jobs."""

from __future__ import annotations

from concurrent.futures import Future
from types import TracebackType
from typing import Protocol, Self

from postmax.errors import PostmaxError
from postmax.sweep.attempt import Task
from postmax.sweep.events import Outcome


class LauncherError(PostmaxError):
    """A launcher cannot run jobs at all, so that the sweep must stop."""


class Launcher(Protocol):
    """Runs jobs: in this process, in processes of this machine, or on a cluster.

    A launcher calls `postmax.sweep.attempt.attempt` for each task, wherever the work is done, and hands back the
    outcome. It does not pass on how far a run is: the sweep reads that from the folder of the run, so all machines need
    to see the same folders.

    A launcher is a context manager. The end of the `with` block ends everything that the launcher started; after an
    error or Ctrl-C it ends the running jobs too. Their folders stay and can be resumed.
    """

    @property
    def slots(self) -> int:
        """How many jobs can run at once. The sweep never submits more."""
        ...

    def submit(self, task: Task) -> Future[Outcome]:
        """Begin to run a job.

        A job whose process dies has the outcome "died", with the reason, and costs no other job anything.

        Returns:
            A future with the outcome. Its exception is a `LauncherError` if no job can be run. A launcher that has one
            slot may run the whole job before it returns.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
