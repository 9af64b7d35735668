"""The command line. Its packages, typer and rich, are imported when it runs."""

from __future__ import annotations

import io
import os
import sys

from postmax.cli.imports import load_plugins
from postmax.errors import PostmaxError


def main(arguments: list[str] | None = None) -> None:
    """Run `postmax ...` with these arguments, by default those of the process.

    Data go to standard output and messages to standard error. The exit code is 2 for an error that the user can fix.
    """
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal cannot show must not end a command whose work is done.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        arguments = load_plugins(sys.argv[1:] if arguments is None else arguments)
        from postmax.cli.app import app  # noqa: PLC0415  (it needs the extra "cli")

        app(arguments, prog_name="postmax")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(f"postmax: the command line needs {error.name}: pip install 'postmax[cli]'.")
    except PostmaxError as error:
        print(f"postmax: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("postmax: stopped.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The program that read our output has ended, as in `postmax … | head`. This is not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        print(f"postmax: {error}", file=sys.stderr)
        sys.exit(2)
