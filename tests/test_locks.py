"""Locks between processes: who gets them, who waits, and what happens when files, folders and processes go."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from postmax.errors import BusyError, DataError
from postmax.locks import hold
from postmax.runs.folder import RunFolder


def hold_until_killed(path: Path, ready: Path) -> None:
    with hold(path, wait=False):
        ready.touch()
        time.sleep(60)


def enter_and_leave(path: Path, rounds: int) -> None:
    """Take a lock again and again, delete its file and folder, and check that nobody else is inside."""
    inside = path.parent.parent / "inside"
    entered = 0
    while entered < rounds:
        try:
            with hold(path, wait=bool(entered % 2)):
                os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails if another process is inside
                inside.unlink()
                path.unlink()
                entered += 1
        except BusyError:
            pass
        finally:
            with contextlib.suppress(OSError):
                path.parent.rmdir()


def take_the_run(path: Path, rounds: int) -> None:
    """Take the lock of a run that never begins, so that its folder goes each time."""
    inside = path.parent / "inside"
    entered = 0
    while entered < rounds:
        try:
            with RunFolder(path).lock():
                os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
                inside.unlink()
                entered += 1
        except BusyError:
            pass


def start(target, *args):
    multiprocessing.set_forkserver_preload(["postmax.sweep.sweep"])
    process = multiprocessing.get_context("forkserver").Process(target=target, args=args)
    process.start()
    return process


def test_a_lock_is_refused_while_it_is_held_and_free_again_afterwards(tmp_path):
    path = tmp_path / "new" / "folder" / "lock"
    with hold(path, wait=False):
        with pytest.raises(BusyError, match="another process holds this lock"), hold(path, wait=False):
            pass
        with pytest.raises(BusyError, match=r"^come back later$"), hold(path, wait=False, busy="come back later"):
            pass
    with hold(path, wait=False):
        pass


def test_an_error_in_the_block_frees_the_lock_and_is_not_changed(tmp_path):
    with pytest.raises(FileNotFoundError, match="mine"), hold(tmp_path / "lock", wait=False):
        raise FileNotFoundError("mine")
    with hold(tmp_path / "lock", wait=False):
        pass


def test_waits_for_another_thread(tmp_path):
    order, taken = [], threading.Event()

    def first():
        with hold(tmp_path / "lock", wait=False):
            taken.set()
            time.sleep(0.2)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    taken.wait()
    with hold(tmp_path / "lock", wait=True):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]


def test_the_block_may_end_in_another_thread(tmp_path):
    lock = hold(tmp_path / "lock", wait=False)
    lock.__enter__()
    thread = threading.Thread(target=lock.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    with hold(tmp_path / "lock", wait=False):
        pass


def test_a_thread_that_waits_for_itself_is_told_so(tmp_path):
    with hold(tmp_path / "lock", wait=False):
        with pytest.raises(RuntimeError, match="Deadlock"), hold(tmp_path / "lock", wait=True):
            pass
        with pytest.raises(BusyError), hold(tmp_path / "lock", wait=False):
            pass


def test_a_killed_process_gives_the_lock_back(tmp_path):
    process = start(hold_until_killed, tmp_path / "lock", tmp_path / "ready")
    until = time.monotonic() + 60
    while not (tmp_path / "ready").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    with pytest.raises(BusyError), hold(tmp_path / "lock", wait=False):
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with hold(tmp_path / "lock", wait=False):
        pass


@pytest.mark.parametrize(("target", "name"), [(enter_and_leave, "folder/lock"), (take_the_run, "folder")])
def test_never_two_at_once_while_lock_files_and_folders_are_deleted(tmp_path, target, name):
    processes = [start(target, tmp_path / name, 200) for _ in range(3)]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wait", [False, True])
def test_a_folder_that_cannot_be_made_is_named(tmp_path, wait):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(DataError, match=r"file could not be written: (Not a directory|File exists)"),
        hold(tmp_path / "file" / "lock", wait=wait),
    ):
        pass


@pytest.mark.parametrize("wait", [False, True])
def test_a_folder_that_cannot_be_written_is_named(monkeypatch, tmp_path, wait):
    real = os.open

    def refuse(path, *args, **options):
        if str(path).endswith("lock"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(path, *args, **options)

    monkeypatch.setattr(os, "open", refuse)
    with (
        pytest.raises(DataError, match="not be written: Read-only file system"),
        hold(tmp_path / "lock", wait=wait),
    ):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="Windows locks files in another way")
@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (errno.ENOSYS, r"the file system of .* has no locks \(Function not implemented\)"),
        (errno.ENOLCK, r"the file system of .* has no locks \(No locks available\)"),
        (errno.EIO, "could not be written: Input/output error"),
    ],
)
def test_a_file_system_without_locks_is_named(monkeypatch, tmp_path, code, message, wait):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(DataError, match=message), hold(tmp_path / "lock", wait=wait):
        pass


def test_a_folder_that_goes_at_every_attempt_does_not_hang(monkeypatch, tmp_path):
    monkeypatch.setattr("filelock._api.ensure_directory_exists", lambda _: None)
    with (
        pytest.raises(DataError, match="not be written: No such file"),
        hold(tmp_path / "gone" / "lock", wait=True),
    ):
        pass
