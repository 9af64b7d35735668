"""How many threads an estimate uses: one for small work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Parameters of a network, as in `postmax.train.build`, and numbers in a table of probabilities.
SMALL_NETWORK, SMALL_TABLE = 100_000, 2**20


@contextmanager
def one_thread(small: bool) -> Iterator[None]:
    """Use one thread inside, if the work is small.

    Several threads gain nothing there: each operation takes microseconds, and on a machine that others use too the
    threads wait for each other. Sums depend on how they are divided among threads, so the last digits may differ from
    those of a computation with several threads.

    Args:
        small: Whether the work is small.
    """
    threads = torch.get_num_threads()
    try:
        if small:
            torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(threads)
