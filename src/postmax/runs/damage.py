"""Whether a run that says it is done can be read."""

from __future__ import annotations

from postmax.runs.folder import RunFolder


def damage(folder: RunFolder) -> str | None:
    """What is wrong with what a finished run left; None if nothing is, or it is not finished.

    A run that is not finished looks after itself: whether it can go on shows when it does.
    """
    if folder.state != "done":
        return None
    try:
        folder.result()
        folder.metrics()
    except ValueError as error:  # an InputError is one, and so is what is no UTF-8
        return str(error)
    return None
