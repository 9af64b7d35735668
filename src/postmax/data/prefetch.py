"""Read ahead: threads read the next values while the current one is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def read_ahead(
    read: Callable[[Key], Value], keys: Iterable[Key], *, threads: int = 2, ahead: int = 4
) -> Generator[Value, None, None]:
    """Yield `read(key)` for every key in order, while threads read the next keys.

    At most `ahead` results wait at the same time. An error in `read` is raised when its result is due. The threads end
    with the iterator: when it is exhausted, closed, deleted, or left by an exception.

    Example:
        >>> list(read_ahead(str.upper, ["a", "b", "c"]))
        ['A', 'B', 'C']
    """
    pool = ThreadPoolExecutor(threads, thread_name_prefix="postmax-reader")
    waiting: deque[Future[Value]] = deque()
    try:
        for key in keys:
            waiting.append(pool.submit(read, key))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
