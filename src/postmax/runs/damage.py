"""Check whether the files of a finished run can be read."""

from __future__ import annotations

from postmax.runs.folder import RunFolder


def damage(folder: RunFolder) -> str | None:
    """Return what is wrong with the files of a finished run; None if they are fine, or the run is not finished.

    A run that is not finished is checked when it continues.
    """
    if folder.state != "done":
        return None
    try:
        folder.result()
        folder.metrics()
    except ValueError as error:  # this includes InputError, and bytes that are not UTF-8
        return str(error)
    return None
