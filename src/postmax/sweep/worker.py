"""One process of a sweep: it runs what it is handed, and ends when nobody is left to hand it anything."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from postmax.errors import InputError
from postmax.runs.checkpoint import DamagedRun
from postmax.runs.folder import Busy, RunFolder
from postmax.sweep.events import Outcome, Step
from postmax.train.config import RunConfig

Execute = Callable[..., Any]

# A worker that is told to stop gets this long to write down where it is.
GRACE_SECONDS = 5.0
_SECONDS_BETWEEN_STEPS = 0.1


def train(config: RunConfig, folder: Path, **options: Any) -> Any:
    """`postmax.runs.execution.execute`, imported by the process that trains: it takes longer than all the rest."""
    from postmax.runs.execution import execute  # noqa: PLC0415

    return execute(config, folder, **options)


@dataclass(frozen=True)
class Task:
    """What to run, and where; `again` if it has failed before and is to be tried anew."""

    config: RunConfig
    folder: Path
    again: bool = False


def attempt(task: Task, execute: Execute, progress: Callable[[Step], None]) -> Outcome:
    """Run a job, and say how that ended; only an interruption passes through."""
    threads = torch.get_num_threads()
    try:
        if task.again:
            _forget_failure(task.folder)
        execute(task.config, task.folder, progress=progress)
    except Busy as error:
        return Outcome("busy", str(error))
    except DamagedRun as error:
        return Outcome("damaged", str(error))
    except Exception as error:
        return _outcome(error, task.folder)
    else:
        return Outcome("done")
    finally:
        # A run goes on with as many threads as it began with; the next one must not inherit them.
        torch.set_num_threads(threads)


def _outcome(error: Exception, folder: Path) -> Outcome:
    # A run that diverges says so in its folder; anything else is not the run's own doing.
    if RunFolder(folder).state == "failed":
        return Outcome("failed", str(error))
    if _memory_was_full(error):
        # The others may be smaller, and the first line says it all.
        return Outcome("died", f"the memory is full ({str(error).partition(chr(10))[0] or type(error).__name__})")
    known = isinstance(error, InputError)
    reason = str(error) if known else f"{type(error).__name__}: {error}."
    return Outcome("error", reason, "" if known else traceback.format_exc())


def _memory_was_full(error: Exception) -> bool:
    """Torch has an error of its own for GPUs, but none for the CPU."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)


def _forget_failure(folder: Path) -> None:
    run = RunFolder(folder)
    with run.lock():
        # Another sweep may have been faster.
        if run.state == "failed":
            run.clear()


def serve(tasks: Connection, lifeline: Connection, execute: Execute, threads: int) -> None:
    """The life of a worker process.

    Args:
        tasks: Brings a `Task`, or None for the end; takes steps and outcomes.
        lifeline: Its other end is open as long as the sweep lives.
        execute: What runs a configuration.
        threads: Of torch.
    """
    signal.signal(signal.SIGINT, _interrupt_once)
    try:
        # The sweep starts its workers with the signal held back, so that Ctrl-C during the imports prints no trace.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
        torch.set_num_threads(threads)
        tasks.send("ready")
        while (task := tasks.recv()) is not None:
            tasks.send(attempt(task, execute, _Throttle(tasks)))
    except (KeyboardInterrupt, EOFError, BrokenPipeError, ConnectionResetError):
        # Told to stop, or nobody is there any more: the folder can be resumed.
        return
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Throttle:
    """A tiny network takes a thousand epochs a second; nobody reads that fast."""

    def __init__(self, tasks: Connection) -> None:
        self._tasks = tasks
        self._next = 0.0

    def __call__(self, step: Step) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _SECONDS_BETWEEN_STEPS
            self._tasks.send(step)


def _interrupt_once(_signal: int, _frame: FrameType | None) -> None:
    """Ctrl-C reaches a worker from the terminal and again through the lifeline; the second must not disturb."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with(lifeline: Connection) -> None:
    """Wait for the sweep to end, also by kill −9; then stop the main thread, gently at first."""
    with contextlib.suppress(EOFError, OSError):
        lifeline.recv_bytes()
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    time.sleep(GRACE_SECONDS)
    os._exit(1)
