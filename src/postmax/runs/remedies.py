"""What to do about a run that cannot continue, in the words of the reader."""

from __future__ import annotations

import shlex
from pathlib import Path

from postmax.wording import advice


def start_again(folder: Path) -> str:
    """Return the advice to delete what was trained, and to start again."""
    return advice(
        python="Start again with execute(…, restart=True).",
        command=f"Start again: postmax resume {shlex.quote(str(folder))} --restart",
    )


def go_back(folder: Path) -> str:
    """Return the advice to continue from the checkpoint before the last one."""
    return advice(
        python="The checkpoint before it is kept: continue from there with execute(…, previous=True).",
        command="The checkpoint before it is kept. Continue from there: "
        f"postmax resume {shlex.quote(str(folder))} --previous",
    )
