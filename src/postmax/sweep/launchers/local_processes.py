"""A launcher that runs jobs in several processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any, Literal, Self, cast

from postmax.progress import is_silent
from postmax.runs import execute as execute_run
from postmax.sweep.attempt import Execute, Task
from postmax.sweep.cores import cores
from postmax.sweep.events import Outcome
from postmax.sweep.launchers.base import LauncherError
from postmax.sweep.launchers.worker import GRACE_SECONDS, prepare, work
from postmax.wording import at_the_command_line

# A worker is a fresh interpreter: a fork of a process that has used torch may hang.
START_METHOD: Literal["spawn"] = "spawn"


class LocalProcesses:
    """Runs jobs in worker processes, which start when there is work and are replaced when they die.

    Each slot is a `concurrent.futures.ProcessPoolExecutor` of one worker. An executor breaks as a whole when one of its
    workers dies; with one worker each, that costs one job its last epochs and the other jobs nothing.

    The executor of the standard library was chosen over that of `loky`, which was compared with it. Both need the
    arrangement above. The standard library tells a worker when its parent has died, also by `kill -9`; on Linux and
    macOS loky does not. It lets us create the process, so that we know its exit code as a number; loky has it in the
    text of an error. It adds no dependency. An advantage of loky is that a script needs no
    `if __name__ == "__main__":`; here a script that lacks it is told so.

    Args:
        slots: How many jobs run at once.
        execute: The function that runs a configuration. Workers import it by its name.
        threads: The number of torch threads in each worker; by default an equal share of the cores.
    """

    def __init__(self, slots: int, execute: Execute = execute_run, *, threads: int | None = None) -> None:
        self.slots = slots
        self._execute = execute
        self._threads = threads or max(1, cores() // slots)
        # A thread of an executor may change these at any moment. A worker leaves `_workers` only when its process is
        # dead, so that `__exit__` ends every process.
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []

    def submit(self, task: Task) -> Future[Outcome]:
        """Hand a job to a worker that has no job.

        Raises:
            RuntimeError: If all slots are busy.
        """
        if len(self._workers) - len(self._idle) >= self.slots:
            raise RuntimeError(f"all {self.slots} slots are busy.")
        worker, running = self._begin(task)
        outcome: Future[Outcome] = Future()
        running.add_done_callback(partial(self._settle, worker, outcome))
        return outcome

    def _begin(self, task: Task) -> tuple[_Worker, Future[Outcome]]:
        while self._idle:
            worker = self._idle.pop()
            # A worker may have been killed while it had no job. Its executor notices that late on a busy machine.
            with suppress(BrokenProcessPool):
                if worker.process.is_alive():
                    return worker, worker.run(task)
            self._workers.discard(worker)
        worker = _Worker(self._execute, self._threads)
        self._workers.add(worker)
        return worker, worker.run(task)

    def _settle(self, worker: _Worker, outcome: Future[Outcome], ended: Future[Outcome]) -> None:
        """Pass on how a job ended. A thread of the executor calls this."""
        if ended.cancelled():
            outcome.set_result(Outcome("died", "it was stopped before it began"))
            return
        error = ended.exception()
        if isinstance(error, BrokenProcessPool):
            self._workers.discard(worker)
            worker.explain_death(outcome)
            return
        self._idle.append(worker)
        if error is None:
            outcome.set_result(ended.result())
        else:
            outcome.set_exception(LauncherError(f"a job could not be handed to a worker process ({error!r})."))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        workers = list(self._workers)
        deadline = threading.Timer(GRACE_SECONDS, _kill, [workers])
        deadline.start()
        try:
            if kind is not None:
                for worker in workers:
                    worker.interrupt()
            for worker in workers:
                worker.close()
        finally:
            # A second Ctrl-C comes here at once.
            deadline.cancel()
            _kill(workers)
            self._workers.clear()
            self._idle.clear()


class _Worker:
    """A process and its executor."""

    def __init__(self, execute: Execute, threads: int) -> None:
        context = _RememberingContext()
        arguments = (execute, threads, at_the_command_line(), is_silent())
        self._executor = ProcessPoolExecutor(
            1, mp_context=cast("BaseContext", context), initializer=prepare, initargs=arguments
        )
        with _interrupts_held_back():
            self._start = self._executor.submit(os.getpid)
        self.process = context.processes[0]

    def run(self, task: Task) -> Future[Outcome]:
        """Begin a job."""
        return self._executor.submit(work, task)

    def interrupt(self) -> None:
        """End the process, and its job in an orderly way where the operating system allows that."""
        if hasattr(signal, "pthread_kill") and self.process.is_alive():
            os.kill(cast("int", self.process.pid), signal.SIGINT)
        else:
            self.process.kill()

    def close(self) -> None:
        """Let the process end by itself, and wait for that."""
        self._executor.shutdown(cancel_futures=True)

    def explain_death(self, outcome: Future[Outcome]) -> None:
        """Say how the process ended, which its executor has just found dead."""
        self.process.join(GRACE_SECONDS)
        code = self.process.exitcode
        started = self._start.done() and self._start.exception() is None
        if started or (code is not None and code < 0):
            outcome.set_result(Outcome("died", _cause(code)))
        else:
            outcome.set_exception(
                LauncherError(
                    f"a worker process could not start (exit code {code}; its own message is above). In a script, call "
                    'the sweep under `if __name__ == "__main__":`, or use one worker.'
                )
            )


def _kill(workers: Iterable[_Worker]) -> None:
    for worker in workers:
        worker.process.kill()
    for worker in workers:
        worker.process.join()


class _RememberingContext:
    """A context of multiprocessing that remembers the processes which it makes."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context(START_METHOD)
        self.processes: list[BaseProcess] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def Process(self, *args: Any, **options: Any) -> BaseProcess:  # noqa: N802  (the name in multiprocessing)
        process: BaseProcess = self._context.Process(*args, **options)
        self.processes.append(process)
        return process


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Start processes that do not notice Ctrl-C until they are ready for it; see `prepare`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # The resource tracker of multiprocessing lets the signal through when it starts, so it must run before.
    resource_tracker.ensure_running()
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _cause(code: int | None) -> str:
    if code is None or code >= 0:
        return f"its process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ", as when the memory is full" if name == "SIGKILL" else ""
    return f"its process was killed by {name} (exit code {code}){hint}"
