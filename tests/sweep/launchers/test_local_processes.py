"""Worker processes: how they start, how they are replaced, and how they end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from fake_runs import alive, execute, job, log_of, pids_of

from postmax.progress import is_silent, listening, silent
from postmax.runs import RunFolder
from postmax.sweep.attempt import Task
from postmax.sweep.cores import cores
from postmax.sweep.events import Outcome
from postmax.sweep.launchers import LauncherError, LocalProcesses
from postmax.sweep.launchers.local_processes import _Worker
from postmax.sweep.launchers.worker import GRACE_SECONDS
from postmax.wording import advice, command_line


def tell_threads(config, folder, **_):
    folder.mkdir(parents=True)
    (folder / "threads").write_text(str(torch.get_num_threads()))


def tell_voice(config, folder, **_):
    folder.mkdir(parents=True)
    (folder / "voice").write_text(advice(python="python", command="command") + (", silent" if is_silent() else ""))


def never_listens(config, folder, **_):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    folder.mkdir(parents=True)
    time.sleep(60)


def task(store, number=0, **behaviour):
    one = job(number, **behaviour)
    return Task(one.config, store / one.run_id)


def wait_for(condition, seconds=60.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.01)


@pytest.mark.usefixtures("quick_workers")
@pytest.mark.parametrize(("slots", "threads", "expected"), [(2, 3, 3), (2, None, max(1, cores() // 2))])
def test_torch_threads_are_an_equal_share_of_the_cores(tmp_path, slots, threads, expected):
    with LocalProcesses(slots, tell_threads, threads=threads) as launcher:
        one = task(tmp_path)
        assert launcher.submit(one).result(60) == Outcome("done")
    assert (one.folder / "threads").read_text() == str(expected)


@pytest.mark.usefixtures("quick_workers")
@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (nullcontext(), "python"),
        (command_line(), "command"),
        (listening(silent), "python, silent"),
    ],
)
def test_workers_give_advice_as_their_sweep_does_and_are_silent_if_it_is(tmp_path, context, expected):
    with context, LocalProcesses(1, tell_voice) as launcher:
        one = task(tmp_path)
        assert launcher.submit(one).result(60) == Outcome("done")
    assert (one.folder / "voice").read_text() == expected


def test_workers_are_fresh_interpreters_that_go_with_the_launcher(tmp_path):
    with LocalProcesses(2, execute) as launcher:
        futures = [launcher.submit(task(tmp_path, number, seconds=0.3)) for number in range(2)]
        assert [future.result(60) for future in futures] == [Outcome("done")] * 2
        pids = pids_of(tmp_path)
        assert len(pids) == 2
        for pid in pids:
            assert "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()
    assert not any(map(alive, pids))


@pytest.mark.usefixtures("quick_workers")
def test_a_killed_worker_costs_its_own_job_only_and_is_replaced(tmp_path):
    with LocalProcesses(2, execute) as launcher:
        long = launcher.submit(task(tmp_path, 0, seconds=0.5))
        wait_for(lambda: pids_of(tmp_path))
        (pid,) = pids_of(tmp_path)
        killed = launcher.submit(task(tmp_path, 1, killed=True)).result(60)
        assert killed == Outcome("died", "its process was killed by SIGKILL (exit code -9), as when the memory is full")
        assert launcher.submit(task(tmp_path, 2)).result(60) == Outcome("done")
        assert long.result(60) == Outcome("done")
        # The first worker has done its job and lives on; the second was replaced.
        assert alive(pid)
        assert len(pids_of(tmp_path)) == 3
    assert [text for run, text in log_of(tmp_path) if run == job(0, seconds=0.5).run_id] == ["1", "2", "3", "done"]


@pytest.mark.usefixtures("quick_workers")
def test_a_worker_that_was_killed_while_it_had_no_job_costs_nothing(tmp_path):
    with LocalProcesses(1, execute) as launcher:
        launcher.submit(task(tmp_path, 0)).result(60)
        (pid,) = pids_of(tmp_path)
        os.kill(pid, signal.SIGKILL)
        (worker,) = launcher._idle
        wait_for(lambda: not worker.process.is_alive())  # its executor need not have noticed it
        assert launcher.submit(task(tmp_path, 1)).result(60) == Outcome("done")


@pytest.mark.usefixtures("quick_workers")
def test_an_interrupted_worker_leaves_its_job_in_order_and_ends(tmp_path):
    with LocalProcesses(1, execute) as launcher:
        one = task(tmp_path, 0, seconds=100)
        future = launcher.submit(one)
        wait_for((one.folder / "config.yaml").exists)
        (pid,) = pids_of(tmp_path)
        os.kill(pid, signal.SIGINT)
        assert future.result(GRACE_SECONDS / 2) == Outcome("died", "its process ended with exit code 130")
        assert not alive(pid)
        with RunFolder(one.folder).lock():
            assert RunFolder(one.folder).state == "started"


@pytest.mark.usefixtures("quick_workers")
def test_a_run_that_could_not_begin_leaves_no_folder_when_it_is_interrupted(tmp_path):
    one, launcher = task(tmp_path), LocalProcesses(1, hold_the_lock)
    future = launcher.submit(one)
    wait_for((tmp_path / "held").exists)
    launcher.__exit__(KeyboardInterrupt)
    assert future.result(0).ending == "died"
    assert not one.folder.exists()


def hold_the_lock(config, folder, **_):
    with RunFolder(folder).lock():
        (folder.parent / "held").touch()  # the lock file appears a moment before the lock is held
        time.sleep(60)


@pytest.mark.usefixtures("quick_workers")
def test_a_worker_that_does_not_listen_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr("postmax.sweep.launchers.local_processes.GRACE_SECONDS", 0.5)
    one = task(tmp_path)
    launcher = LocalProcesses(1, never_listens)
    future = launcher.submit(one)
    wait_for(one.folder.exists)
    started = time.monotonic()
    launcher.__exit__(ZeroDivisionError)
    assert 0.4 < time.monotonic() - started < 5
    assert future.result(0).reason.startswith("its process was killed by SIGKILL")


def test_a_worker_that_is_still_importing_is_ended(tmp_path):
    launcher = LocalProcesses(2, execute)
    for number in range(2):
        launcher.submit(task(tmp_path, number, seconds=100))
    started = time.monotonic()
    launcher.__exit__(ZeroDivisionError)
    assert time.monotonic() - started < GRACE_SECONDS + 3
    assert log_of(tmp_path) == []


@pytest.mark.usefixtures("quick_workers")
def test_a_worker_whose_job_ends_while_the_launcher_ends_is_ended_too(tmp_path, monkeypatch):
    ending, go_on = threading.Event(), threading.Event()

    class Slow(Future):
        """A future that waits in the middle of telling the launcher how the job ended."""

        def exception(self, timeout=None):
            ending.set()
            go_on.wait(60)
            return super().exception(timeout)

    run = _Worker.run

    def run_slowly(self, task):
        slow = Slow()
        run(self, task).add_done_callback(lambda ended: slow.set_result(ended.result()))
        return slow

    monkeypatch.setattr(_Worker, "run", run_slowly)
    launcher = LocalProcesses(1, execute)
    outcome = launcher.submit(task(tmp_path))
    assert ending.wait(60)
    threading.Timer(0.3, go_on.set).start()
    launcher.__exit__(None)
    assert not any(map(alive, pids_of(tmp_path)))
    assert outcome.result(60) == Outcome("done")


@pytest.mark.usefixtures("quick_workers")
def test_refuses_more_jobs_than_slots(tmp_path):
    with LocalProcesses(1, execute) as launcher:
        future = launcher.submit(task(tmp_path, 0, seconds=0.2))
        with pytest.raises(RuntimeError, match="all 1 slots are busy"):
            launcher.submit(task(tmp_path, 1))
        assert future.result(60) == Outcome("done")


@pytest.mark.usefixtures("quick_workers")
def test_a_job_that_cannot_be_sent_is_an_error_of_the_launcher(tmp_path):
    one = task(tmp_path)
    with LocalProcesses(1, execute) as launcher:
        with pytest.raises(LauncherError, match="could not be handed to a worker"):
            launcher.submit(Task(one.config, one.folder, plugins=(threading.Lock(),))).result(60)
        assert launcher.submit(one).result(60) == Outcome("done")
    assert len(pids_of(tmp_path)) == 1
    assert not any(map(alive, pids_of(tmp_path)))
    assert multiprocessing.active_children() == []
