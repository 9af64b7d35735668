"""What to do about a run that cannot continue, or a model that cannot be used, in the words of the reader."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
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


def missing_plugins(plugins: Sequence[str]) -> str:
    """Return the advice to import the plugins that a model was trained with; nothing if it had none."""
    if not plugins:
        return ""
    way = advice(python="Import them before you load the model", command="Name them with --import")
    return f" The model was trained with the plugins {', '.join(plugins)}. {way}."
