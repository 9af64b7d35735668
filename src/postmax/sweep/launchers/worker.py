"""What happens inside a worker process of `LocalProcesses`: it runs jobs, and ends when the sweep ends."""

from __future__ import annotations

import _thread
import multiprocessing
import os
import signal
import threading
import time
from contextlib import ExitStack
from types import FrameType

import torch

from postmax.progress import Lines, listening, silent
from postmax.sweep.attempt import Execute, Task, attempt
from postmax.sweep.events import Outcome
from postmax.wording import command_line

# A worker that must end has this many seconds to leave its job in an orderly way.
GRACE_SECONDS = 5.0
# The usual exit code of a program that Ctrl-C ended.
INTERRUPTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_execute: Execute | None = None
_working = False
_for_the_whole_process = ExitStack()


def prepare(execute: Execute, threads: int, at_the_command_line: bool = False, quiet: bool = False) -> None:
    """Make this process a worker. The executor calls it once, in the main thread, before the first job.

    Args:
        execute: The function that runs a configuration.
        threads: The number of torch threads.
        at_the_command_line: Whether errors give advice for the command line, as in the process of the sweep.
        quiet: Whether to say nothing on standard error. Otherwise a worker says when it has to wait for another
            process, and each half minute how far work before the training is.
    """
    global _execute  # noqa: PLW0603  (a process is one worker)
    _execute = execute
    torch.set_num_threads(threads)
    if at_the_command_line:
        _for_the_whole_process.enter_context(command_line())
    _for_the_whole_process.enter_context(listening(silent if quiet else Lines(share=None)))
    threading.Thread(target=_end_with_the_sweep, daemon=True).start()
    for number in _SIGNALS:
        signal.signal(number, _interrupt)
    if hasattr(signal, "pthread_sigmask"):
        # The sweep starts its workers with this signal held back, so that Ctrl-C during the imports prints no trace.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def work(task: Task) -> Outcome:
    """Run a job. An interruption ends the job in an orderly way and then the process."""
    global _working  # noqa: PLW0603
    assert _execute is not None, "`prepare` comes first"  # noqa: S101
    _working = True
    try:
        return attempt(task, _execute)
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)  # an ordinary exit would print a trace
    finally:
        _working = False


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Handle a signal. It comes from the terminal (Ctrl-C), a scheduler (SIGTERM), the sweep, or the thread below."""
    if not _working:
        os._exit(INTERRUPTED)
    # Ctrl-C reaches a worker from the terminal and again from the sweep. The second must not disturb the first.
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with_the_sweep() -> None:
    """Wait until the process of the sweep has ended, also by `kill -9`, and then end this process."""
    sweep = multiprocessing.parent_process()
    if sweep is not None:
        sweep.join()
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()
    time.sleep(GRACE_SECONDS)
    os._exit(1)
