"""Locks between processes: while one process holds the lock of a file, no other process can take it."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from postmax.errors import BusyError, DataError
from postmax.files import not_written

# What file systems answer that do not know locks, such as some of those in a network.
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
_ATTEMPTS = 20
_SECONDS_BETWEEN_ATTEMPTS = 0.01


@contextmanager
def hold(path: str | Path, *, wait: bool, busy: str | None = None) -> Iterator[None]:
    """Hold the lock of a file while the `with` block runs.

    The operating system keeps the lock, so it is free again as soon as the process ends, also after `kill -9`. The lock
    file and its folder are created if they do not exist. The lock file stays afterwards: a program that deletes a lock
    file which it does not hold can let two processes in. A holder may delete the file (and then the folder) inside the
    block; whoever waits for the deleted file notices that and begins again with a new one.

    The lock is not re-entrant: a second `hold` of the same file is refused, also in the same process and thread.

    Args:
        path: The lock file. It holds no data.
        wait: Whether to wait until the lock is free. A thread that waits for a lock which it holds itself gets a
            `RuntimeError`, because it would wait for ever.
        busy: The text of the `BusyError`, if the default text does not suit.

    Raises:
        BusyError: If `wait` is False and the lock is not free.
        DataError: If the file cannot be created, or its file system has no locks.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "lock"
        >>> with hold(path, wait=False):
        ...     try:
        ...         with hold(path, wait=False):
        ...             pass
        ...     except BusyError:
        ...         print("busy")
        busy
    """
    lock = _take(Path(path), wait, busy or f"{path}: another process holds this lock.")
    try:
        yield
    finally:
        lock.release()


def _take(path: Path, wait: bool, busy: str) -> BaseFileLock:
    # - `fallback_to_soft` would replace the lock of the operating system by a file that outlives a killed process.
    # - Without `thread_local` the block may end in another thread than it began in.
    # - `filelock` compares a lock that it has just got with the file system. If the file was deleted meanwhile, it
    #   tries again, or reports a timeout if it must not wait.
    lock = FileLock(path, blocking=wait, thread_local=False, fallback_to_soft=False)
    for _ in range(_ATTEMPTS):
        try:
            lock.acquire()
        except Timeout as error:
            raise BusyError(busy) from error
        except (FileNotFoundError, FileExistsError) as error:
            # The last holder deletes the folder while it is created here. This cannot go on for long.
            failure: OSError = error
            time.sleep(_SECONDS_BETWEEN_ATTEMPTS)
        except OSError as error:
            raise _cannot_lock(path, error) from error
        else:
            return lock
    raise _cannot_lock(path, failure) from failure


def _cannot_lock(path: Path, error: OSError) -> DataError:
    if error.errno in _NO_LOCKS:
        return DataError(f"the file system of {path.parent} has no locks ({error.strerror}): use another one.")
    return not_written(path.parent, error)
