"""A process that keeps freed memory is not given new pages for it. Each case needs a process of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

NEEDS_GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library can be told")
# A block of 64 MB has 16384 pages of 4 KB.
PROGRAM = """
import resource, torch
from postmax.train import make_config
from postmax.train.build import build
from postmax.train.memory import keep_freed_memory
{first}
def faults():
    torch.ones(2**24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
counts = [faults() for _ in range(6)]
print(keep_freed_memory(), min(later - earlier for earlier, later in zip(counts, counts[1:])))
"""
BUILD = 'build(make_config({"data": {"name": "digits"}, "accelerator": "cpu"}))'


def told(first: str, **settings: str) -> tuple[str, int]:
    """Whether memory is kept, and how many new pages a later block of 64 MB takes, the least of five.

    A small allocation may sit where the block was. Then the next block needs new pages, though memory is kept.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **settings}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(first=first)], env=environment, capture_output=True, text=True, check=True
    )
    kept, pages = done.stdout.split()
    return kept, int(pages)


@NEEDS_GLIBC
def test_a_run_on_the_cpu_uses_freed_memory_again() -> None:
    kept, pages = told(BUILD)
    if kept == "False":
        pytest.skip("this version of the C library refuses")
    assert pages < 1000


@pytest.mark.slow
@NEEDS_GLIBC
def test_settings_of_the_user_stay_as_they_are() -> None:
    kept, pages = told(BUILD, MALLOC_MMAP_THRESHOLD_="1000000")
    assert kept == "False"
    assert pages > 10_000
