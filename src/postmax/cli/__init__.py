"""The command line; typer and rich are imported when it runs."""

from __future__ import annotations

import io
import os
import sys

from postmax.errors import InputError


def main(arguments: list[str] | None = None) -> None:
    """Run `postmax ...`: data to standard output, messages to standard error, exit code 2 for what a user can mend."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a sign must not be the end of a command whose work is done.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        from postmax.cli.app import app  # noqa: PLC0415  (needs the extra)

        app(arguments, prog_name="postmax")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(f"postmax: the command line needs {error.name}: pip install 'postmax[cli]'.")
    except InputError as error:
        print(f"postmax: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("postmax: stopped.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has gone, as in `postmax … | head`; nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        print(f"postmax: {error}", file=sys.stderr)
        sys.exit(2)
