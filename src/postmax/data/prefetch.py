"""Reading ahead: slow reads run in a few threads while their results are used in order."""

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
    """Yield `read(key)` for every key in order, while threads are already reading the next ones.

    At most `ahead` results wait at any time. An error in `read` is raised here, when its turn comes. The threads end
    with the iterator: when it is exhausted, closed, dropped, or left by an exception.

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
