"""What every launcher must do, whatever runs its jobs. A new launcher joins by one line in `LAUNCHERS`."""

from __future__ import annotations

import sys

import pytest
import torch
from fake_launcher import Threads
from fake_runs import execute, finish, job, log_of

from postmax import plugins
from postmax.runs import RunFolder
from postmax.sweep.attempt import Task
from postmax.sweep.events import Outcome
from postmax.sweep.launchers import InProcess, LocalProcesses

LAUNCHERS = {
    "this process": lambda: InProcess(execute),
    "local processes": lambda: LocalProcesses(2, execute),
    "threads": lambda: Threads(2, execute),
}

pytestmark = pytest.mark.usefixtures("quick_workers")


@pytest.fixture(params=LAUNCHERS)
def launcher(request):
    return LAUNCHERS[request.param]()


def task(store, number=0, **behaviour):
    one = job(number, **behaviour)
    return Task(one.config, store / one.run_id)


def outcome(launcher, task) -> Outcome:
    return launcher.submit(task).result(60)


def test_has_slots_and_runs_jobs_in_them_again_and_again(tmp_path, launcher):
    with launcher:
        assert launcher.slots >= 1
        for batch in range(3):
            numbers = range(batch * launcher.slots, (batch + 1) * launcher.slots)
            futures = [launcher.submit(task(tmp_path, number)) for number in numbers]
            assert [future.result(60) for future in futures] == [Outcome("done")] * launcher.slots
    assert sorted(text for _, text in log_of(tmp_path)) == sorted(["1", "2", "3", "done"] * 3 * launcher.slots)


def test_says_how_a_job_ended(tmp_path, launcher):
    with launcher:
        assert outcome(launcher, task(tmp_path, 0, diverges=True)) == Outcome("failed", "the loss is not finite")
        damaged = outcome(launcher, task(tmp_path, 1, damaged=True))
        assert (damaged.ending, damaged.reason[-26:]) == ("damaged", "the checkpoint is damaged.")
        died = outcome(launcher, task(tmp_path, 2, memory="gpu"))
        assert (died.ending, died.reason[:18]) == ("died", "the memory is full")
        assert outcome(launcher, task(tmp_path, 3, breaks=True)) == Outcome("error", "the disk is full.")
        bug = outcome(launcher, task(tmp_path, 4, bug=True))
        assert (bug.ending, bug.reason) == ("error", "KeyError: 'oops'.")
        assert "misbehave" in bug.trace
        with RunFolder(tmp_path / job(5).run_id).lock():
            assert outcome(launcher, task(tmp_path, 5)).ending == "busy"
        # None of this keeps it from running the next job.
        assert outcome(launcher, task(tmp_path, 6)) == Outcome("done")


def test_continues_what_was_begun_and_does_not_repeat_what_is_done(tmp_path, launcher):
    begun, done = job(0), job(1)
    folder = RunFolder(tmp_path / begun.run_id)
    with folder.lock():
        folder.write("config.yaml", begun.config.to_yaml().encode())
        folder.write("epoch.txt", b"2")
    finish(done.config, tmp_path)
    with launcher:
        assert outcome(launcher, task(tmp_path, 0)) == Outcome("done")
        assert outcome(launcher, task(tmp_path, 1)) == Outcome("done")
    assert log_of(tmp_path) == [(begun.run_id, "3"), (begun.run_id, "done")]


def test_begins_a_failed_run_again_when_the_task_says_so(tmp_path, launcher):
    first = task(tmp_path, diverges=True)
    with launcher:
        outcome(launcher, first)
        once = len(log_of(tmp_path))
        assert outcome(launcher, first).ending == "failed"
        assert len(log_of(tmp_path)) == once
        (first.folder / "epoch.txt").unlink()
        again = Task(first.config, first.folder, again=True)
        assert outcome(launcher, again).ending == "failed"
        assert len(log_of(tmp_path)) == 2 * once


def test_loads_plugins_before_the_run(tmp_path, monkeypatch, launcher):
    monkeypatch.setattr(plugins, "_imported", [])
    monkeypatch.setattr(sys, "path", list(sys.path))
    plugin = tmp_path / "a_plugin.py"
    plugin.write_text(f"open({str(tmp_path / 'imported')!r}, 'w').close()\n")
    first, second = task(tmp_path, 0), task(tmp_path, 1)
    try:
        with launcher:
            assert outcome(launcher, Task(first.config, first.folder, plugins=(str(plugin),))) == Outcome("done")
            assert (tmp_path / "imported").exists()
            missing = outcome(launcher, Task(second.config, second.folder, plugins=("no_such_plugin",)))
    finally:
        sys.modules.pop("a_plugin", None)
    assert missing.ending == "error"
    assert missing.reason.startswith("cannot import 'no_such_plugin'")
    assert not second.folder.exists()


def test_leaves_the_threads_of_this_process_alone(tmp_path, launcher):
    before = torch.get_num_threads()
    with launcher:
        outcome(launcher, task(tmp_path))
    assert torch.get_num_threads() == before


def test_an_error_of_the_sweep_passes_through_and_the_folder_can_be_resumed(tmp_path, launcher):
    one = job(0, epochs=4, seconds=0.3)

    def break_off():
        with launcher:
            launcher.submit(task(tmp_path, 0, epochs=4, seconds=0.3))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        break_off()
    # No process works on it any more.
    known = len(log_of(tmp_path))
    with RunFolder(tmp_path / one.run_id).lock():
        pass
    assert len(log_of(tmp_path)) == known
    execute(one.config, tmp_path / one.run_id)
    assert [text for _, text in log_of(tmp_path)] == ["1", "2", "3", "4", "done"]
