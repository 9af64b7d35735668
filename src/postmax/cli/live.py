"""Live lines on a terminal that show how far a run is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as LiveLines
from rich.table import Column
from rich.text import Text

from postmax.duration import in_words
from postmax.progress import Lines, Stage, listening, silent
from postmax.runs import Progress


@contextmanager
def show_run(
    label: str, *, console: Console | None = None, quiet: bool = False, every: float = 30.0
) -> Iterator[Callable[[Progress], None]]:
    """Show how far one run is, while the `with` block runs.

    Args:
        label: The name of the run in its line.
        console: Where to write; by default standard error. If it is not a terminal, a line is written now and then.
        quiet: Write nothing if the console is not a terminal.
        every: How many seconds pass between two lines that are written elsewhere than on a terminal.

    Yields:
        A function to call after each epoch, such as the `progress` of `postmax.runs.execute`.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        with show_stages(console=console, quiet=quiet):
            yield (lambda _: None) if quiet else _NowAndThen(label, console, every)
        return
    with live_lines(console) as lines, listening(StageLine(lines)):
        line = lines.add_task(label, total=None, text="")

        def show(progress: Progress) -> None:
            lines.update(line, total=progress.epochs, completed=progress.epoch, text=progress_text(progress))

        yield show


@contextmanager
def show_stages(*, console: Console | None = None, quiet: bool = False) -> Iterator[None]:
    """Show how far long work is, while the `with` block runs: whatever is told by `postmax.progress.tell`.

    Args:
        console: Where to write; by default standard error. On a terminal there is a live line, elsewhere a line now and
            then.
        quiet: Write nothing if the console is not a terminal.
    """
    console = console or Console(stderr=True)
    if console.is_terminal:
        with live_lines(console) as lines, listening(StageLine(lines)):
            yield
    else:
        with listening(silent if quiet else Lines(lambda text: _write(console, text))):
            yield


class StageLine:
    """A live line for the piece of work that goes on now."""

    def __init__(self, lines: LiveLines) -> None:
        self._lines = lines
        self._what = ""
        self._line: TaskID | None = None

    def __call__(self, stage: Stage) -> None:
        """Show a stage in the line, or print a message."""
        if not stage.amount:
            _write(self._lines.console, stage.what)
            return
        if stage.what != self._what:
            self._remove()
        if self._line is None:
            self._what, self._line = stage.what, self._lines.add_task(stage.what, total=stage.total, text="")
        self._lines.update(self._line, completed=stage.done, total=stage.total, text=stage.amount)
        if stage.share is not None and stage.share >= 1:
            self._remove()

    def _remove(self) -> None:
        if self._line is not None:
            self._lines.remove_task(self._line)
        self._line = None


class _NowAndThen:
    """Lines for a log that say how far a run is."""

    def __init__(self, label: str, console: Console, every: float) -> None:
        self._label, self._console, self._every = label, console, every
        self._last = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            _write(self._console, f"{self._label}: {progress_text(progress)} left")


def _write(console: Console, text: str) -> None:
    # A line of a log is not broken, and square brackets are no markup.
    console.print(Text(text), soft_wrap=True)


def live_lines(console: Console) -> LiveLines:
    """Return an empty display of lines, each with a name, a bar and a text; it is a context manager.

    Its method `add_task` adds a line and takes the text as `text`.
    """
    name = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    # Names and texts may hold square brackets, which rich would take for markup.
    return LiveLines(
        TextColumn("{task.description}", markup=False, table_column=name),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[text]}", markup=False, table_column=Column(no_wrap=True)),
        console=console,
        transient=True,
        refresh_per_second=4,
    )


def progress_text(progress: Progress) -> str:
    """Return how far a run is, in a few words.

    Example:
        >>> progress_text(Progress(12, 100, 0.3456, 0.931, 75.0))
        '12/100  loss 0.346  93.1 %  1 min 15 s'
    """
    accuracy = "" if progress.accuracy is None else f"  {100 * progress.accuracy:.1f} %"
    left = in_words(progress.seconds_left)
    return f"{progress.epoch}/{progress.epochs}  loss {progress.loss:.3g}{accuracy}  {left}"
