"""A file that several processes need is made by one of them; if that one is killed, the next makes it."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from postmax.errors import DataError
from postmax.files import atomic_write
from postmax.once import alone_with, make_once
from postmax.progress import listening

_CONTEXT = multiprocessing.get_context("fork")


def ask(folder: Path, hold: bool) -> None:
    """The body of a process that needs the file. With `hold` it begins to make it and never ends."""
    with listening(lambda stage: (folder / f"said-{os.getpid()}").write_text(str(stage))):
        make_once(folder / "answer", lambda: make(folder, hold), what="the answer")


def make(folder: Path, hold: bool) -> None:
    with atomic_write(folder / "answer") as file:
        file.write(b"4")
        (folder / f"made-{os.getpid()}").touch()
        while hold:
            time.sleep(0.01)
        file.write(b"2")


def start(folder, *, hold=False):
    process = _CONTEXT.Process(target=ask, args=(folder, hold))
    process.start()
    return process


def wait_for(found, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_one_makes_it_and_the_others_wait_for_it(tmp_path):
    go = tmp_path / "go"
    go.mkdir()
    processes = [start(go) for _ in range(4)]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len([name for name in names(go) if name.startswith("made")]) == 1
    assert (go / "answer").read_text() == "42"
    assert not [name for name in names(go) if name.endswith((".lock", ".holder"))]


def test_a_killed_process_lets_the_next_one_make_it(tmp_path):
    first = start(tmp_path, hold=True)
    wait_for((tmp_path / f"made-{first.pid}").exists)
    second = start(tmp_path)
    said = tmp_path / f"said-{second.pid}"
    wait_for(lambda: said.exists() and said.read_text())
    assert said.read_text() == f"waiting for the answer (process {first.pid} makes it)"
    assert not (tmp_path / "answer").exists()
    os.kill(first.pid, signal.SIGKILL)
    first.join()
    second.join()
    assert second.exitcode == 0
    assert (tmp_path / "answer").read_text() == "42"
    assert (tmp_path / f"made-{second.pid}").exists()


def test_what_is_there_is_not_made(tmp_path):
    (tmp_path / "answer").write_text("42")
    make_once(tmp_path / "answer", lambda: pytest.fail("made again"), what="the answer")
    assert names(tmp_path) == ["answer"]


def test_after_an_error_the_next_may_try(tmp_path):
    with pytest.raises(ZeroDivisionError):
        make_once(tmp_path / "answer", lambda: 1 / 0, what="the answer")
    assert names(tmp_path) == []
    make_once(tmp_path / "answer", lambda: make(tmp_path, hold=False), what="the answer")
    assert (tmp_path / "answer").read_text() == "42"


def test_a_folder_that_cannot_be_one_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="could not be written"), alone_with(tmp_path / "file" / "answer", what="it"):
        pass
