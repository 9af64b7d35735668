"""The command line. It imports typer and rich only when a command runs."""

from __future__ import annotations

import io
import os
import sys

import postmax.cli.started  # noqa: F401  (first, because it notes the time)
from postmax.cli.imports import load_plugins
from postmax.cli.stopping import Stopped, starting, stoppable
from postmax.errors import InputError, PostmaxError
from postmax.wording import command_line


def main(arguments: list[str] | None = None) -> None:
    """Run `postmax ...`. Data goes to standard output, messages go to standard error.

    The exit code is 0 if the command succeeded, 2 for an input that cannot be used (a wrong argument, a setting, a file
    or a folder), 1 for every other error (a diverged run, a busy folder, a sweep that could not finish), 3 if
    `postmax audit --fail-above` found too many wrong labels, 130 after Ctrl-C and 143 after SIGTERM.

    Args:
        arguments: The words after `postmax`; by default those of the command line.
    """
    try:
        with stoppable(), command_line():
            for stream in (sys.stdout, sys.stderr):
                # A terminal that cannot show a character must not make a command fail whose work is done.
                if isinstance(stream, io.TextIOWrapper):
                    stream.reconfigure(errors="replace")
            _run(sys.argv[1:] if arguments is None else arguments)
    except PostmaxError as error:
        _fail(str(error), 2 if isinstance(error, InputError) else 1)
    except (Stopped, KeyboardInterrupt) as stop:
        _fail("stopped.", stop.exit_code if isinstance(stop, Stopped) else 130)
    except BrokenPipeError:
        # The program that reads the output has ended, as in `postmax … | head`. That is not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        _fail(str(error), 2)


def _run(arguments: list[str]) -> None:
    try:
        with starting():
            arguments = load_plugins(arguments)
            from postmax.cli.app import app  # noqa: PLC0415  (it needs the extra "cli")

        app(arguments, prog_name="postmax")
    except SystemExit as end:
        # click ends with code 1 where the reader of the output has ended, and wraps the stream.
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":
            raise BrokenPipeError from end
        raise
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("typer", "rich"):
            raise
        _fail(f"the command line needs {error.name}: pip install 'postmax[cli]'.", 1)


def _fail(message: str, code: int) -> None:
    print(f"postmax: {message}", file=sys.stderr)
    sys.exit(code)
