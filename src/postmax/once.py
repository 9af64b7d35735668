"""Make a file once, although several processes need it: one makes it, and the others wait for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from postmax.errors import BusyError
from postmax.progress import Stage, tell


def make_once(path: Path, make: Callable[[], None], *, what: str) -> None:
    """Make a file that does not exist, unless another process makes it meanwhile.

    Args:
        path: The file.
        make: Writes the file in one step, with `postmax.files.atomic_write`, so that a half-made file is never used.
        what: What the file is, for the message of a process that waits.

    Raises:
        DataError: If the folder cannot be written, or its file system has no locks.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "answer"
        >>> for _ in range(2):
        ...     make_once(path, lambda: print("made", path.write_text("42")), what="the answer")
        made 2
    """
    if path.exists():
        return
    with alone_with(path, what=what):
        if not path.exists():
            make()


@contextmanager
def alone_with(path: Path, *, what: str) -> Iterator[None]:
    """Work on a file, while no other process does. A process that has to wait says so, once.

    The operating system keeps the lock, so a process that is killed frees it, and the next one goes on. Look inside the
    block whether the file is there: another process may have made it in the meantime.

    Args:
        path: The file. The lock lies beside it, and is deleted at the end.
        what: What the file is, for the message of a process that waits.

    Raises:
        DataError: If the folder cannot be written, or its file system has no locks.
    """
    from postmax.locks import hold  # noqa: PLC0415  (it needs filelock, which reading data alone does not)

    lock, holder = (path.with_name(f".{path.name}.{kind}") for kind in ("lock", "holder"))
    with ExitStack() as stack:
        try:
            stack.enter_context(hold(lock, wait=False))
        except BusyError:
            tell(Stage(f"waiting for {what} ({_who(holder)} makes it)"))
            stack.enter_context(hold(lock, wait=True))
        # Both are deleted while the lock is held; whoever waits for a deleted lock file begins again with a new one.
        stack.callback(_delete, holder, lock)
        with suppress(OSError):
            holder.write_text(str(os.getpid()), encoding="utf-8")
        yield


def _delete(*files: Path) -> None:
    for file in files:
        with suppress(OSError):  # Windows does not delete a file that is open
            file.unlink()


def _who(holder: Path) -> str:
    try:
        return f"process {int(holder.read_text(encoding='utf-8'))}"
    except (OSError, ValueError):
        return "another process"
