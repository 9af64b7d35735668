"""Keep the memory that a training step frees for the next step."""

from __future__ import annotations

import ctypes
import os
from functools import cache

# The names of the GNU C library, and its numbers for them.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT = 2**30


@cache
def keep_freed_memory() -> bool:
    """Let this process keep freed memory for later, and return whether it does.

    A step on the CPU frees the maps of its layers, and the next step needs them again. The GNU C library returns blocks
    of more than 32 MB to the system at once. The system then has to fill new pages with zeros, which took up to a fifth
    of a step. Blocks up to 1 GiB are kept, so the process may stay near its largest size until it ends. Only speed and
    memory change, never a number. Where there is another C library, or the user has tuned this one,
    nothing happens.
    """
    if any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # Windows, or a library without this function
        return False
    # Older versions refuse so large a number for the first setting. The second one alone would make things worse.
    return bool(mallopt(_M_MMAP_THRESHOLD, _KEPT)) and bool(mallopt(_M_TRIM_THRESHOLD, _KEPT))
