"""How a command ends when somebody stops it: Ctrl-C, or SIGTERM from a scheduler or a container."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """Somebody stopped the command. It is raised wherever the command is, like `KeyboardInterrupt`.

    It is not a `KeyboardInterrupt`, because typer would take that for itself and forget which signal came.

    Attributes:
        exit_code: The usual exit code for the signal: 130 after Ctrl-C, 143 after SIGTERM.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` when somebody stops the command, while the `with` block runs."""
    with _handled_by(_stop):
        yield


@contextmanager
def starting() -> Iterator[None]:
    """Import what a command needs. Nothing has begun yet, so a signal ends the process at once and without a trace.

    An exception would not do: in the middle of an import it may end up as another error, or only be printed.
    """
    with _handled_by(_quit):
        yield


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    raise Stopped(number)


def _quit(number: int, _frame: FrameType | None) -> NoReturn:
    # Inside a signal handler `print` may find its buffer in use, and raise.
    os.write(2, b"postmax: stopped before anything began.\n")
    os._exit(128 + number)


@contextmanager
def _handled_by(handler: signal._HANDLER) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    # A shell starts background jobs with Ctrl-C ignored, and `nohup` and the like must be respected.
    own = [number for number in _SIGNALS if before[number] is not signal.SIG_IGN]
    try:
        for number in own:
            signal.signal(number, handler)
        yield
    finally:
        for number in own:
            signal.signal(number, before[number])
