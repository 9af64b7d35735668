"""How long this command took to start."""

from __future__ import annotations

import time

_BEGAN = time.perf_counter()


def seconds_since_start() -> float:
    """Return the seconds since `postmax.cli` was imported: the first thing that a command does.

    Asked before the work begins, it says how long importing takes, for this process and for any worker like it.
    """
    return time.perf_counter() - _BEGAN
