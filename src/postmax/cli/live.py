"""Live lines on a terminal that show how far a run is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Lines
from rich.table import Column

from postmax.duration import in_words
from postmax.runs import Progress


@contextmanager
def show_run(label: str, *, console: Console | None = None) -> Iterator[Callable[[Progress], None]]:
    """Show how far one run is, while the `with` block runs.

    Args:
        label: The name of the run in its line.
        console: Where to write; by default standard error. If it is not a terminal, nothing is written.

    Yields:
        A function to call after each epoch, such as the `progress` of `postmax.runs.execute`.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with live_lines(console) as lines:
        line = lines.add_task(label, total=None, text="")

        def show(progress: Progress) -> None:
            lines.update(line, total=progress.epochs, completed=progress.epoch, text=progress_text(progress))

        yield show


def live_lines(console: Console) -> Lines:
    """Return an empty display of lines, each with a name, a bar and a text; it is a context manager.

    Its method `add_task` adds a line and takes the text as `text`.
    """
    name = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    # Names and texts may hold square brackets, which rich would take for markup.
    return Lines(
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
