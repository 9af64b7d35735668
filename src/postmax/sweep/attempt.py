"""One attempt to run a job. Every launcher calls this, in the process that does the work."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from postmax import plugins
from postmax.errors import BusyError, PostmaxError
from postmax.runs import DamagedRun, RunFolder
from postmax.sweep.events import Outcome
from postmax.train.config import RunConfig

# A function such as `postmax.runs.execute`: it takes a configuration and a folder, and perhaps options by name.
Execute = Callable[..., Any]


@dataclass(frozen=True)
class Task:
    """What the process that runs a job must know. It can be pickled.

    Attributes:
        config: The configuration of the run.
        folder: The folder of the run.
        again: Whether the run failed before and must begin anew.
        plugins: The plugins to load first, as `postmax.plugins.loaded` names them. They register the losses, methods,
            models or data sets that the configuration names and that are not part of postmax.
    """

    config: RunConfig
    folder: Path
    again: bool = False
    plugins: tuple[str, ...] = ()


def attempt(task: Task, execute: Execute, **options: Any) -> Outcome:
    """Run a job and return how that ended. Only an interruption (Ctrl-C) is raised.

    Args:
        task: The job.
        execute: The function that runs it.
        options: Further options for `execute`.
    """
    threads = torch.get_num_threads()
    try:
        plugins.load(task.plugins)
        if task.again:
            _forget_failure(task.folder)
        execute(task.config, task.folder, **options)
    except BusyError as error:
        return Outcome("busy", str(error))
    except DamagedRun as error:
        return Outcome("damaged", str(error))
    except Exception as error:
        return _outcome(error, task.folder)
    else:
        return Outcome("done")
    finally:
        # A resumed run uses as many threads as it had at its beginning. The next run must not inherit that number.
        torch.set_num_threads(threads)


def _outcome(error: Exception, folder: Path) -> Outcome:
    # A run that diverges records that in its folder. The cause of every other error lies outside the run.
    if RunFolder(folder).state == "failed":
        return Outcome("failed", str(error))
    if _memory_was_full(error):
        # Other runs may need less memory. The first line of the message says enough.
        return Outcome("died", f"the memory is full ({str(error).partition(chr(10))[0] or type(error).__name__})")
    known = isinstance(error, PostmaxError)
    reason = str(error) if known else f"{type(error).__name__}: {error}."
    return Outcome("error", reason, "" if known else traceback.format_exc())


def _memory_was_full(error: Exception) -> bool:
    """Return whether an error means that the memory was full. Torch has its own error for GPUs, but not for CPUs."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)


def _forget_failure(folder: Path) -> None:
    run = RunFolder(folder)
    with run.lock():
        # Another sweep may have begun the run again in the meantime.
        if run.state == "failed":
            run.clear()
