"""Worker processes: started when there is work, replaced when they die, ended with the sweep whatever ends it."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Literal, Self

from postmax.runs.job import Job
from postmax.sweep.events import Outcome, Step
from postmax.sweep.worker import GRACE_SECONDS, Execute, Task, serve

# A fresh interpreter: forks of a process that has used torch may hang.
START_METHOD: Literal["spawn"] = "spawn"


class StartError(RuntimeError):
    """A worker process ended before it could take a job."""


@dataclass
class _Worker:
    process: SpawnProcess
    tasks: Connection
    lifeline: Connection
    ready: bool = False
    job: Job | None = None


class Pool:
    """Up to `size` processes that run jobs; a context manager that leaves none behind."""

    def __init__(self, size: int, execute: Execute, threads: int) -> None:
        self._size = size
        self._execute = execute
        self._threads = threads
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        deadline = time.monotonic() + GRACE_SECONDS
        try:
            for worker in self._workers:
                if kind is None:
                    _tell(worker, None)
                else:
                    worker.lifeline.close()
            for worker in self._workers:
                worker.process.join(max(0.0, deadline - time.monotonic()))
        finally:
            # Also after a second Ctrl-C.
            for worker in self._workers:
                worker.process.kill()
                worker.process.join()
                worker.tasks.close()
                worker.lifeline.close()
            self._workers.clear()

    @property
    def busy(self) -> int:
        """How many jobs are being run."""
        return sum(worker.job is not None for worker in self._workers)

    @property
    def free(self) -> int:
        """How many more jobs could be."""
        return self._size - self.busy

    def submit(self, job: Job, task: Task) -> None:
        """Hand a job to a worker that has none."""
        for worker in [worker for worker in self._workers if worker.job is None]:
            # One that was killed while it had nothing to do is passed over; `messages` will bury it.
            if _tell(worker, task):
                worker.job = job
                return
        worker = self._start()
        worker.job = job
        _tell(worker, task)

    def messages(self, timeout: float) -> Iterator[tuple[Job, Step | Outcome]]:
        """What the workers have to say within `timeout` seconds.

        Raises:
            StartError: If a worker ended before it could take a job.
        """
        speaking = connection.wait([worker.tasks for worker in self._workers], timeout)
        for worker in [worker for worker in self._workers if worker.tasks in speaking]:
            try:
                message = worker.tasks.recv()
            except (EOFError, OSError):
                yield from self._bury(worker)
                continue
            if message == "ready":
                worker.ready = True
            elif worker.job is not None:
                job = worker.job
                if isinstance(message, Outcome):
                    worker.job = None
                yield job, message

    def _start(self) -> _Worker:
        context = multiprocessing.get_context(START_METHOD)
        tasks, their_tasks = context.Pipe()
        their_lifeline, lifeline = context.Pipe(duplex=False)
        process = context.Process(
            target=serve, args=(their_tasks, their_lifeline, self._execute, self._threads), daemon=True
        )
        # The tracker lifts the hold when it starts, so it has to run before.
        resource_tracker.ensure_running()
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
            worker = _Worker(process, tasks, lifeline)
            self._workers.append(worker)
        finally:
            their_tasks.close()
            their_lifeline.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
        return worker

    def _bury(self, worker: _Worker) -> Iterator[tuple[Job, Outcome]]:
        self._workers.remove(worker)
        worker.lifeline.close()
        worker.tasks.close()
        worker.process.join(GRACE_SECONDS)
        code = worker.process.exitcode
        if not worker.ready and (code is None or code > 0):
            raise StartError(
                f"a worker process could not start (exit code {code}; its own words are above). In a script, call the "
                'sweep under `if __name__ == "__main__":`, or use one worker.'
            )
        if worker.job is not None:
            yield worker.job, Outcome("died", _cause(code))


def _tell(worker: _Worker, task: Task | None) -> bool:
    """Whether the worker was there to hear it."""
    try:
        worker.tasks.send(task)
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def _cause(code: int | None) -> str:
    if code is None or code >= 0:
        return f"its process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ", as when the memory is full" if -code == signal.SIGKILL else ""
    return f"its process was killed by {name} (exit code {code}){hint}"
