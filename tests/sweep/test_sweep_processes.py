"""Sweeps over worker processes that are killed, interrupted and orphaned for real."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
from fake_runs import alive, drive, execute, job, log_of, pids_of

from postmax.runs.folder import RunFolder
from postmax.sweep.events import SweepError
from postmax.sweep.launchers.worker import GRACE_SECONDS
from postmax.sweep.sweep import sweep


def start(store, jobs, workers):
    # The server has imported everything, so that a driver starts at once.
    multiprocessing.set_forkserver_preload(["postmax.sweep.sweep"])
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=drive, args=(store, jobs, workers))
    process.start()
    return process


def wait_for(condition, seconds=60.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.01)


def assert_done_once(store, jobs, kills, workers):
    log = log_of(store)
    repeats = 0
    for one in jobs:
        assert RunFolder(store / one.run_id).state == "done"
        assert RunFolder(store / one.run_id).result()["run_id"] == one.run_id
        mine = [text for run_id, text in log if run_id == one.run_id]
        assert mine.count("done") <= 1
        epochs = [int(text) for text in mine if text != "done"]
        # An epoch is repeated only if it was killed before it was written down, and never by two at once.
        assert epochs == sorted(epochs)
        assert set(epochs) == set(range(1, one.config.epochs + 1))
        repeats += len(epochs) - one.config.epochs
    assert repeats <= kills * workers
    assert sum(text == "done" for _, text in log) >= len(jobs) - kills * workers


def kill(process):
    process.kill()
    process.join()


def press_ctrl_c(process):
    # A terminal sends the signal to all processes of the group, workers included.
    os.killpg(os.getpgid(process.pid), signal.SIGINT)
    process.join(20)
    assert process.exitcode == 130


def stop_and_restart(store, jobs, workers, stops, seconds):
    rng = random.Random(0)
    for stop in stops:
        process = start(store, jobs, workers)
        # At a random moment after something has happened.
        known = len(log_of(store))
        wait_for(lambda known=known: len(log_of(store)) > known)
        time.sleep(rng.uniform(0, seconds))
        assert process.is_alive()
        stop(process)
        # Workers end by themselves, and soon.
        wait_for(lambda: not any(alive(pid) for pid in pids_of(store)), seconds=10)
    process = start(store, jobs, workers)
    process.join(120)
    assert process.exitcode == 0
    assert_done_once(store, jobs, len(stops), workers)
    assert (store / "stderr.txt").read_text() == ""


def test_killed_at_random_moments_in_one_process(tmp_path):
    jobs = [job(number, seconds=0.02) for number in range(20)]
    stop_and_restart(tmp_path, jobs, workers=1, stops=[kill, kill, press_ctrl_c, kill, kill, kill], seconds=0.1)


def test_killed_and_interrupted_with_workers(tmp_path):
    jobs = [job(number, seconds=0.15) for number in range(8)]
    stop_and_restart(tmp_path, jobs, workers=2, stops=[kill, press_ctrl_c], seconds=0.3)


@pytest.mark.parametrize("stop", [kill, press_ctrl_c])
def test_workers_end_also_in_the_middle_of_a_long_epoch(tmp_path, stop):
    jobs = [job(number, seconds=100) for number in range(2)]
    process = start(tmp_path, jobs, 2)
    wait_for(lambda: all((tmp_path / one.run_id / "config.yaml").exists() for one in jobs))
    stop(process)
    # They are interrupted. The kill after the time of grace would come later.
    wait_for(lambda: not any(alive(pid) for pid in pids_of(tmp_path)), seconds=GRACE_SECONDS / 2)
    for one in jobs:
        with RunFolder(tmp_path / one.run_id).lock():
            assert RunFolder(tmp_path / one.run_id).state == "started"
    assert (tmp_path / "stderr.txt").read_text() == ""


@pytest.mark.slow
def test_killed_at_random_moments_with_workers_many_times(tmp_path):
    jobs = [job(number, seconds=0.3) for number in range(60)]
    stop_and_restart(tmp_path, jobs, workers=3, stops=[kill, kill, press_ctrl_c, kill] * 4, seconds=1)


def test_a_killed_worker_costs_only_its_job_until_the_next_time(tmp_path):
    jobs = [job(0, killed=True), job(1), job(2, diverges=True), *(job(number) for number in range(3, 8))]
    seen = []
    with pytest.raises(SweepError, match=r"1 run stopped before it was done") as caught:
        sweep(jobs, tmp_path, workers=2, execute=execute, watch=seen.append)
    assert "exit code -9" in str(caught.value)
    assert str(tmp_path / jobs[0].run_id) in str(caught.value)
    report = caught.value.report
    assert set(report.done) == {one.run_id for one in jobs} - {jobs[0].run_id, jobs[2].run_id}
    assert report.failed == {jobs[2].run_id: "the loss is not finite"}
    assert list(report.died) == [jobs[0].run_id]
    assert {event.job.run_id for event in seen if event.kind == "progress"} >= set(report.done)
    assert not any(alive(pid) for pid in pids_of(tmp_path))
    again = sweep(jobs, tmp_path, execute=execute)
    assert again.done == [jobs[0].run_id]
    assert [text for run_id, text in log_of(tmp_path) if run_id == jobs[0].run_id] == ["1", "2", "3", "done"]


@pytest.mark.usefixtures("quick_workers")
def test_an_error_stops_all_workers(tmp_path):
    bad, long = job(0, bug=True), job(1, epochs=1000, seconds=0.1)
    with pytest.raises(SweepError, match="KeyError") as caught:
        sweep([bad, long, job(2)], tmp_path, workers=2, execute=execute)
    assert str(tmp_path / bad.run_id) in str(caught.value)
    assert "misbehave" in caught.value.__notes__[0]
    assert not any(alive(pid) for pid in pids_of(tmp_path))
    with RunFolder(tmp_path / long.run_id).lock():
        assert RunFolder(tmp_path / long.run_id).state != "done"


@pytest.mark.usefixtures("quick_workers")
def test_damage_and_full_memory_in_a_worker_cost_only_their_jobs(tmp_path):
    damaged, large, fine = job(0, damaged=True), job(1, memory="gpu"), [job(2), job(3)]
    with pytest.raises(SweepError, match="stopped before") as caught:
        sweep([damaged, large, *fine], tmp_path, workers=2, execute=execute)
    report = caught.value.report
    assert (list(report.damaged), list(report.died)) == ([damaged.run_id], [large.run_id])
    assert set(report.done) == {one.run_id for one in fine}
    assert "--restart" in str(caught.value)


@pytest.mark.usefixtures("quick_workers")
def test_a_worker_that_cannot_start_ends_the_sweep(tmp_path, monkeypatch):
    ghost = types.ModuleType("ghost")
    exec("def execute(*args, **options): ...", ghost.__dict__)
    monkeypatch.setitem(sys.modules, "ghost", ghost)  # here, but not in another process
    with pytest.raises(SweepError, match=r"could not start \(exit code 1"):
        sweep([job(0), job(1)], tmp_path, workers=2, execute=ghost.execute)


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from fake_runs import execute, job\n"
        "from postmax.sweep.sweep import sweep\n"
        f"sweep([job(0), job(1)], {str(tmp_path / 'store')!r}, workers=2, execute=execute)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "SweepError: a worker process could not start" in done.stderr.splitlines()[-1]
    assert "__main__" in done.stderr.splitlines()[-1]
