"""A line for each run and one for the whole, on a terminal; elsewhere a line now and then, or nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from postmax.runs.job import Job
from postmax.sweep.events import Event, Step, Watcher
from postmax.sweep.forecast import Forecast, in_words


@contextmanager
def show_progress(
    jobs: Sequence[Job],
    *,
    workers: int = 1,
    expected: Mapping[str, float] | None = None,
    console: Console | None = None,
    say: Callable[[str], None] | None = None,
    every: float = 30.0,
) -> Iterator[Watcher]:
    """What to give a sweep as its `watch`.

    Args:
        jobs: All jobs of the sweep.
        workers: How many run at once.
        expected: Seconds of a run, by run id, where they are known; see `postmax.sweep.plan`.
        console: Where to write; standard error by default.
        say: Where it is no terminal, told a line at most each `every` seconds; nothing is said if None.
        every: See `say`.
    """
    console = console or Console(stderr=True)
    forecast = Forecast(jobs, workers, expected)
    if console.is_terminal:
        with _Lines(forecast, console) as lines:
            yield lines
    else:
        yield _NowAndThen(forecast, say, every)


class _NowAndThen:
    """For a log: failures at once, and how far it is from time to time."""

    def __init__(self, forecast: Forecast, say: Callable[[str], None] | None, every: float) -> None:
        self._forecast, self._say, self._every = forecast, say, every
        self._next = time.monotonic() + every

    def __call__(self, event: Event) -> None:
        self._forecast(event)
        if self._say is None:
            return
        now = time.monotonic()
        if event.kind in ("failed", "died", "damaged"):
            self._say(f"{event.job.label}: {event.reason}")
        if now >= self._next:
            self._next = now + self._every
            self._say(summary(self._forecast))


class _Lines:
    """Live lines. A run gets its line with its first epoch: one that is in other hands never has one."""

    def __init__(self, forecast: Forecast, console: Console) -> None:
        self._forecast = forecast
        self._lines: dict[str, TaskID] = {}
        name = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        # Labels hold brackets, which are no markup.
        self._live = Progress(
            TextColumn("{task.description}", markup=False, table_column=name),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[text]}", markup=False, table_column=Column(no_wrap=True)),
            console=console,
            transient=True,
            refresh_per_second=4,
        )

    def __enter__(self) -> Self:
        self._live.start()
        self._whole = self._live.add_task("all runs", total=self._forecast.total, text="")
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        self._forecast(event)
        run_id = event.job.run_id
        if event.kind == "step" and event.step is not None:
            if run_id not in self._lines:
                self._lines[run_id] = self._live.add_task(event.job.label, total=event.step.epochs, text="")
            self._live.update(self._lines[run_id], completed=event.step.epoch, text=step_text(event.step))
        elif run_id in self._lines:
            self._live.remove_task(self._lines.pop(run_id))
        if event.kind in ("failed", "died", "damaged"):
            self._live.console.print(Text(f"{event.job.label}: {event.reason}", style="red"))
        self._live.update(self._whole, completed=self._forecast.settled, text=summary(self._forecast))


def step_text(step: Step) -> str:
    """How far a run is.

    Example:
        >>> from postmax.runs.execution import Progress
        >>> step_text(Progress(12, 100, 0.3456, 0.931, 75.0))
        '12/100  loss 0.346  93.1 %  1 min 15 s'
    """
    accuracy = "" if step.accuracy is None else f"  {100 * step.accuracy:.1f} %"
    return f"{step.epoch}/{step.epochs}  loss {step.loss:.3g}{accuracy}  {in_words(step.seconds_left)}"


def summary(forecast: Forecast) -> str:
    """How far the whole is."""
    left = forecast.seconds_left()
    return f"{forecast.settled}/{forecast.total} runs" + (f", {in_words(left)} left" if left is not None else "")
