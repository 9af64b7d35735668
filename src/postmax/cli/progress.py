"""The display of a sweep: on a terminal a line for each run and one for the whole, elsewhere a message now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Self

from rich.console import Console
from rich.progress import TaskID
from rich.text import Text

from postmax.cli.live import StageLine, live_lines, progress_text
from postmax.duration import in_words
from postmax.progress import Lines, listening, silent
from postmax.runs.job import Job
from postmax.sweep.events import Event, Watcher
from postmax.sweep.forecast import Forecast


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
    """Show how far a sweep is, while the `with` block runs.

    Args:
        jobs: All jobs of the sweep.
        workers: How many jobs run at once.
        expected: The seconds that a run takes, by run id, where they are known; see `postmax.sweep.plan`.
        console: Where to write; by default standard error.
        say: If the console is not a terminal, this function gets a message at most each `every` seconds, and one for
            each failure; also how far work is that comes before the runs. With None there are no messages.
        every: See `say`.

    Yields:
        A watcher, for the argument `watch` of a sweep.
    """
    console = console or Console(stderr=True)
    forecast = Forecast(jobs, workers, expected)
    if console.is_terminal:
        with _Lines(forecast, console) as lines:
            yield lines
    else:
        with listening(silent if say is None else Lines(say)):
            yield _Messages(forecast, say, every)


class _Messages:
    """Messages for a log: each failure at once, and how far the sweep is from time to time."""

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
    """Live lines. A run gets its line after its first epoch, so a run of another process never has one."""

    def __init__(self, forecast: Forecast, console: Console) -> None:
        self._forecast = forecast
        self._lines: dict[str, TaskID] = {}
        self._live = live_lines(console)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._open.enter_context(self._live)
        self._open.enter_context(listening(StageLine(self._live)))
        self._whole = self._live.add_task("all runs", total=self._forecast.total, text="")
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def __call__(self, event: Event) -> None:
        self._forecast(event)
        run_id = event.job.run_id
        if (progress := event.progress) is not None:
            if run_id not in self._lines:
                self._lines[run_id] = self._live.add_task(event.job.label, total=progress.epochs, text="")
            self._live.update(self._lines[run_id], completed=progress.epoch, text=progress_text(progress))
        elif run_id in self._lines:
            self._live.remove_task(self._lines.pop(run_id))
        if event.kind in ("failed", "died", "damaged"):
            self._live.console.print(Text(f"{event.job.label}: {event.reason}", style="red"))
        self._live.update(self._whole, completed=self._forecast.settled, text=summary(self._forecast))


def summary(forecast: Forecast) -> str:
    """Return how far a sweep is, in a few words."""
    left = forecast.seconds_left()
    return f"{forecast.settled}/{forecast.total} runs" + (f", {in_words(left)} left" if left is not None else "")
