"""Sweeps in this process: what is skipped, resumed, recorded, waited for and reported."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from concurrent.futures import Future

import pytest
import torch
from fake_launcher import Threads
from fake_runs import MEMORY_ERRORS, drive, execute, finish, job, log_of, pids_of

from postmax import plugins
from postmax.errors import DataError, InputError, PostmaxError
from postmax.runs.folder import RunFolder
from postmax.sweep.events import SweepError
from postmax.sweep.launchers import LauncherError
from postmax.sweep.sweep import sweep


def run(jobs, store, **options):
    return sweep(jobs, store, execute=execute, patience=0.05, **options)


def test_runs_everything_once_and_skips_it_the_next_time(tmp_path):
    jobs = [job(number) for number in range(3)]
    events = []
    report = run([*jobs, jobs[0]], tmp_path, watch=events.append)
    assert report.done == [one.run_id for one in jobs]
    assert [event.kind for event in events] == ["started", "progress", "progress", "progress", "done"] * 3
    assert [event.progress.epoch for event in events if event.progress] == [1, 2, 3] * 3
    again = run(jobs, tmp_path)
    assert again.skipped == report.done
    assert again.done == []
    assert len(log_of(tmp_path)) == 3 * 4


def test_resumes_what_was_begun(tmp_path):
    one = job(0)
    folder = RunFolder(tmp_path / one.run_id)
    with folder.lock():
        folder.write("config.yaml", one.config.to_yaml().encode())
        folder.write("epoch.txt", b"2")
    assert run([one], tmp_path).done == [one.run_id]
    assert log_of(tmp_path) == [(one.run_id, "3"), (one.run_id, "done")]


def test_records_failures_and_goes_on(tmp_path):
    bad, good = job(0, diverges=True), job(1)
    report = run([bad, good], tmp_path)
    assert report.failed == {bad.run_id: "the loss is not finite"}
    assert report.done == [good.run_id]


def test_runs_a_failed_job_again_only_when_asked(tmp_path):
    bad = job(0, diverges=True)
    run([bad], tmp_path)
    before = len(log_of(tmp_path))
    assert run([bad], tmp_path).failed == {bad.run_id: "the loss is not finite"}
    assert len(log_of(tmp_path)) == before
    (tmp_path / bad.run_id / "epoch.txt").unlink()
    assert run([bad], tmp_path, retry_failed=True).failed
    assert len(log_of(tmp_path)) == 2 * before


@pytest.mark.parametrize(("behaviour", "message"), [("breaks", "the disk is full"), ("bug", "KeyError: 'oops'")])
def test_other_errors_stop_it_with_the_folder_in_the_message(tmp_path, behaviour, message):
    first, bad, last = job(0), job(1, **{behaviour: True}), job(2)
    with pytest.raises(SweepError, match=message) as caught:
        run([first, bad, last], tmp_path)
    assert str(tmp_path / bad.run_id) in str(caught.value)
    assert caught.value.report.done == [first.run_id]
    assert RunFolder(tmp_path / first.run_id).state == "done"
    assert RunFolder(tmp_path / bad.run_id).state == "started"
    assert RunFolder(tmp_path / last.run_id).state == "new"
    assert any("misbehave" in note for note in getattr(caught.value, "__notes__", [])) == (behaviour == "bug")


@pytest.mark.parametrize("where", ["checkpoint", "result", "metrics", "failure"])
def test_a_damaged_folder_costs_only_its_own_run(tmp_path, where):
    first, bad, last = job(0), job(1, damaged=where == "checkpoint"), job(2)
    if where != "checkpoint":
        finish(bad.config, tmp_path)
        name = {"result": "result.json", "metrics": "metrics.jsonl", "failure": "failure.json"}[where]
        if where == "failure":
            (tmp_path / bad.run_id / "done").unlink()
        (tmp_path / bad.run_id / name).write_bytes(b"\xff{\n")
    seen = []
    with pytest.raises(SweepError, match=r"1 of the runs is damaged") as caught:
        run([first, bad, last], tmp_path, watch=lambda event: seen.append((event.kind, event.job.label)))
    assert f"postmax resume {tmp_path / bad.run_id} --restart" in str(caught.value)
    assert caught.value.report.done == [first.run_id, last.run_id]
    assert list(caught.value.report.damaged) == [bad.run_id]
    assert ("damaged", "job 1") in seen


def test_a_finished_run_without_its_result_is_damaged(tmp_path):
    finish(job(0).config, tmp_path)
    (tmp_path / job(0).run_id / "result.json").unlink()
    with pytest.raises(SweepError, match="damaged"):
        run([job(0)], tmp_path)


@pytest.mark.parametrize("memory", MEMORY_ERRORS)
def test_a_run_too_large_for_the_memory_costs_only_itself(tmp_path, memory):
    large, small = job(0, memory=memory), job(1)
    with pytest.raises(
        SweepError, match=r"1 run stopped before it was done .*\n.*the memory is full .*\n.*fewer workers"
    ) as caught:
        run([large, small], tmp_path)
    assert str(tmp_path / large.run_id) in str(caught.value)
    assert caught.value.report.done == [small.run_id]
    assert list(caught.value.report.died) == [large.run_id]


def test_ctrl_c_leaves_the_folder_resumable(tmp_path):
    one = job(0)

    def interrupt(event):
        if event.progress is not None and event.progress.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([one], tmp_path, watch=interrupt)
    assert RunFolder(tmp_path / one.run_id).state == "started"
    run([one], tmp_path)
    assert log_of(tmp_path) == [(one.run_id, text) for text in ("1", "2", "3", "done")]


def test_waits_for_a_run_in_other_hands_and_takes_over(tmp_path):
    held, free = job(0), job(1)
    events = []
    folder = RunFolder(tmp_path / held.run_id)
    taken, release = threading.Event(), threading.Event()

    def other():
        with folder.lock():
            taken.set()
            release.wait()

    thread = threading.Thread(target=other)
    thread.start()
    taken.wait()

    def watch(event):
        events.append((event.kind, event.job.label))
        # The other one goes away without having finished, after we were turned away twice.
        if events.count(("busy", "job 0")) == 2:
            release.set()

    try:
        report = run([held, free], tmp_path, watch=watch)
    finally:
        release.set()
        thread.join()
    assert report.done == [free.run_id, held.run_id]
    assert events.index(("done", "job 1")) < events.index(("done", "job 0"))
    assert events.count(("busy", "job 0")) >= 2


def test_counts_what_another_sweep_finished_in_the_meantime(tmp_path):
    one = job(0)
    folder = RunFolder(tmp_path / one.run_id)
    lock = folder.lock()
    lock.__enter__()

    def watch(event):
        if event.kind == "busy" and folder.state != "done":
            lock.__exit__(None, None, None)
            finish(one.config, tmp_path)

    report = run([one], tmp_path, watch=watch)
    assert (report.skipped, report.done) == ([one.run_id], [])
    assert log_of(tmp_path) == []


def test_two_sweeps_share_a_folder_and_run_nothing_twice(tmp_path):
    jobs = [job(number, seconds=0.01) for number in range(12)]
    multiprocessing.set_forkserver_preload(["postmax.sweep.sweep"])
    context = multiprocessing.get_context("forkserver")
    sweeps = [context.Process(target=drive, args=(tmp_path, order, 1)) for order in (jobs, jobs, jobs[::-1])]
    for process in sweeps:
        process.start()
    for process in sweeps:
        process.join(60)
        assert process.exitcode == 0
    log = log_of(tmp_path)
    for one in jobs:
        assert [text for run_id, text in log if run_id == one.run_id] == ["1", "2", "3", "done"]
    assert (tmp_path / "stderr.txt").read_text() == ""


def test_threads_of_one_run_are_not_those_of_the_next(tmp_path):
    before = torch.get_num_threads()

    def changes_threads(config, folder, **options):
        torch.set_num_threads(before + 1)
        return execute(config, folder, **options)

    sweep([job(0)], tmp_path, execute=changes_threads)
    assert torch.get_num_threads() == before


def test_a_store_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be the folder of the runs"):
        run([job(0)], tmp_path / "file")


def test_waiting_does_not_burn_the_processor(tmp_path):
    one = job(0)
    lock = RunFolder(tmp_path / one.run_id).lock()
    lock.__enter__()
    until = time.monotonic() + 0.5
    released = []

    def watch(event):
        if event.kind == "busy" and time.monotonic() > until and not released:
            released.append(lock.__exit__(None, None, None))

    started = time.process_time()
    run([one], tmp_path, watch=watch)
    assert time.process_time() - started < 0.3


def test_any_launcher_will_do(tmp_path):
    launcher = Threads(3, execute)
    jobs = [job(0, diverges=True), *(job(number, seconds=0.15) for number in range(1, 7))]
    events = []
    report = sweep(jobs, tmp_path, launcher=launcher, watch=events.append)
    assert set(report.done) == {one.run_id for one in jobs[1:]}
    assert report.failed == {jobs[0].run_id: "the loss is not finite"}
    assert launcher.most <= 3
    assert launcher.ended_by == [None]
    # The launcher tells nothing but outcomes; how far the runs are is in their folders.
    told = {event.job.run_id: event.progress for event in events if event.kind == "progress"}
    assert {run_id: progress.epoch for run_id, progress in told.items()} == {one.run_id: 3 for one in jobs}
    for one in jobs[1:]:
        seen = [event.progress.epoch for event in events if event.job == one and event.progress is not None]
        assert seen == sorted(set(seen))
    assert any(event.progress.epoch < 3 for event in events if event.progress is not None)


def test_an_error_ends_the_launcher_with_the_error(tmp_path):
    launcher = Threads(2, execute)
    with pytest.raises(SweepError, match="the disk is full"):
        sweep([job(0, breaks=True), *map(job, range(1, 9))], tmp_path, launcher=launcher)
    assert launcher.ended_by == [SweepError]


def test_a_launcher_that_cannot_run_jobs_ends_the_sweep(tmp_path):
    class Broken(Threads):
        def submit(self, task):
            future = Future()
            future.set_exception(LauncherError("the cluster is closed today."))
            return future

    with pytest.raises(SweepError, match="the cluster is closed today") as caught:
        sweep([job(0)], tmp_path, launcher=Broken(1, execute))
    assert caught.value.report.done == []


def test_a_failed_sweep_is_not_an_input_error(tmp_path):
    with pytest.raises(PostmaxError) as caught:
        run([job(0, memory="python")], tmp_path)
    assert isinstance(caught.value, SweepError)
    assert not isinstance(caught.value, InputError)


@pytest.mark.usefixtures("quick_workers")
@pytest.mark.parametrize("workers", [1, 2])
def test_runs_have_the_plugins_of_the_sweep(tmp_path, monkeypatch, workers):
    monkeypatch.setattr(plugins, "_imported", [])
    (tmp_path / "my_method.py").write_text(f"import os; open({str(tmp_path)!r} + f'/{{os.getpid()}}', 'w').close()\n")
    plugins.load([str(tmp_path / "my_method.py")])
    try:
        run([job(0, seconds=0.1), job(1, seconds=0.1)], tmp_path / "store", workers=workers)
    finally:
        sys.modules.pop("my_method")
    imported = {int(path.name) for path in tmp_path.iterdir() if path.name.isdecimal()}
    assert imported == {os.getpid(), *pids_of(tmp_path / "store")}
