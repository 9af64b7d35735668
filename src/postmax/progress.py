"""How far long work is: whoever works tells, and whoever shows it listens. Nothing here knows a terminal.

Deep functions call `tell`. The command line, or a program, listens around the call:

>>> with listening(lambda stage: print(stage)):
...     tell(Stage("features", 3, 10, "images"))
features: 3 of 10 images (30 %)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """How far one piece of work is.

    Attributes:
        what: What is done, such as "downloading labels.gz". Without a total it is a whole message.
        done: How much of it is done.
        total: How much there is to do; None if that is not known, or for a message.
        unit: What is counted, such as "images".

    Example:
        >>> str(Stage("estimating the noise", 5, 20)), str(Stage("waiting for labels.gz"))
        ('estimating the noise: 5 of 20 (25 %)', 'waiting for labels.gz')
    """

    what: str
    done: float = 0.0
    total: float | None = None
    unit: str = ""

    @property
    def share(self) -> float | None:
        """How much of the work is done, from 0 to 1; None if that is not known."""
        return None if self.total is None else self.done / self.total if self.total else 1.0

    @property
    def amount(self) -> str:
        """How much is done, in words; empty for a message."""
        unit = f" {self.unit}" if self.unit else ""
        if self.total is None or self.share is None:
            return f"{_number(self.done)}{unit}" if self.done else ""
        return f"{_number(self.done)} of {_number(self.total)}{unit} ({self.share:.0%})".replace("%", " %")

    def __str__(self) -> str:
        return f"{self.what}: {self.amount}" if self.amount else self.what


Listener = Callable[[Stage], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def tell(stage: Stage) -> None:
    """Tell the listener, if there is one, how far the work is."""
    listener = _listener.get()
    if listener is not None:
        listener(stage)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Give every stage that is told inside the `with` block to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def never_silent() -> Iterator[None]:
    """Write lines to standard error, if nobody listens: for work of many minutes that a program did not ask for."""
    with nullcontext() if _listener.get() is not None else listening(Lines()):
        yield


def silent(stage: Stage) -> None:
    """Say nothing, also about work of many minutes: a listener for output that programs read."""


def is_silent() -> bool:
    """Return whether somebody asked for silence."""
    return _listener.get() is silent


class Lines:
    """A listener that writes a line now and then, for logs and for programs.

    Work that is over within `patience` seconds is not mentioned. Longer work gets a line when a tenth more is done, or
    each `every` seconds. Messages are passed on at once.

    Args:
        say: Gets each line; by default standard error.
        every: The longest time without a line, in seconds.
        share: How much more must be done for the next line; None to go by time alone.
        patience: How long a piece of work must last to be mentioned.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        say: Callable[[str], None] | None = None,
        *,
        every: float = 30.0,
        share: float | None = 0.1,
        patience: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say or _to_standard_error
        self._every, self._share, self._patience, self._clock = every, share, patience, clock
        self._works: dict[str, _Work] = {}

    def __call__(self, stage: Stage) -> None:
        """Write a line, if it is time for one."""
        if not stage.amount:
            self._say(str(stage))
            return
        now, share = self._clock(), stage.share or 0.0
        work = self._works.get(stage.what)
        if work is None or stage.done < work.done:  # the same work has begun again
            work = self._works[stage.what] = _Work(begun=now, told=now)
        work.done = stage.done
        waited = now - work.told
        further = self._share is not None and share - work.share >= self._share - 1e-9 and waited >= self._patience
        last = share >= 1 and work.share > 0
        if (waited >= self._every or further or last) and work.share < 1 and now - work.begun >= self._patience:
            self._say(str(stage))
            work.told, work.share = now, share


@dataclass
class _Work:
    """What was said about a piece of work: when, and at which share. `done` is how far it was when it was last seen."""

    begun: float
    told: float
    share: float = 0.0
    done: float = 0.0


def _to_standard_error(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"
