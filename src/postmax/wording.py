"""Messages in the words of the reader: arguments for a Python program, options for a person at the command line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from postmax.errors import PostmaxWarning

_at_the_command_line = False
_SHOWN = 20


def advice(*, python: str, command: str) -> str:
    """Return the advice that fits the reader of a message.

    Args:
        python: The words for somebody who writes Python, such as `missing="median"`.
        command: The words for somebody who typed a command, such as `--missing median`.

    Example:
        >>> advice(python='missing="median"', command="--missing median")
        'missing="median"'
        >>> with command_line():
        ...     advice(python='missing="median"', command="--missing median")
        '--missing median'
    """
    return command if _at_the_command_line else python


def at_the_command_line() -> bool:
    """Return whether advice is given for the command line."""
    return _at_the_command_line


@contextmanager
def command_line() -> Iterator[None]:
    """Speak to a person at the command line, in all threads, while the `with` block runs.

    Advice names options, and a warning of postmax is one line on standard error.
    """
    # A context variable would not reach threads that read data.
    global _at_the_command_line  # noqa: PLW0603
    before, _at_the_command_line = _at_the_command_line, True
    try:
        with _warnings_in_one_line():
            yield
    finally:
        _at_the_command_line = before


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show a warning of postmax without the place in the code, which says nothing to a person."""

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, PostmaxWarning):
            print(f"postmax: warning: {message}", file=sys.stderr)
        else:
            usual(message, category, *place, **more)

    with warnings.catch_warnings():
        usual, warnings.showwarning = warnings.showwarning, show
        yield


def listed(problems: Sequence[str]) -> str:
    """Return all problems of one thing as the end of a message: one as it is, several as lines under their number.

    Args:
        problems: Sentences. Of many the first twenty are shown.

    Example:
        >>> print("t.csv: " + listed(["line 2 has 3 cells.", "column 'age' has no values."]))
        t.csv: 2 problems
          line 2 has 3 cells.
          column 'age' has no values.
        >>> listed(["it has no rows."])
        'it has no rows.'
    """
    if len(problems) == 1:
        return problems[0]
    more = [f"… and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
    return "\n".join([f"{len(problems)} problems", *(f"  {text}" for text in [*problems[:_SHOWN], *more])])
