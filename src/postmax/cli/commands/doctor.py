"""`postmax doctor`: its options and help text."""

from __future__ import annotations

from postmax.cli.options import JsonFlag
from postmax.cli.stopping import starting


def doctor(as_json: JsonFlag = False) -> None:
    """Check the installation, the machine, the numbers and the data sets.

    The exit code is 1 if something is wrong.

    \b
    postmax doctor
    postmax doctor --json
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import doctor as work

    work.doctor(as_json=as_json)
