"""How long a sweep takes: foretold before it, estimated during it, and shown only where somebody looks."""

from __future__ import annotations

import io

import pytest
from fake_runs import FakeProgress, execute, finish, job
from rich.console import Console

from postmax.cli.progress import show_progress
from postmax.runs.folder import RunFolder
from postmax.sweep.events import Event
from postmax.sweep.forecast import Forecast
from postmax.sweep.plan import plan
from postmax.sweep.sweep import sweep


def step(seconds_left, epoch=1):
    return FakeProgress(epoch, 10, 0.5, None, seconds_left)


def test_forecast():
    now = [0.0]
    jobs = [job(number) for number in range(6)]
    forecast = Forecast(jobs, workers=2, expected={jobs[5].run_id: 100.0}, clock=lambda: now[0])
    assert forecast.seconds_left() is None
    forecast(Event("skipped", jobs[0]))
    forecast(Event("started", jobs[1]))
    forecast(Event("started", jobs[2]))
    now[0] = 4.0
    forecast(Event("step", jobs[1], step(6.0)))
    # One run of 10 s with 6 to go; those nobody knows about are like it.
    assert forecast.seconds_left() == pytest.approx(max((6 + 10 + 10 + 10 + 100) / 2, 100))
    now[0] = 5.0
    assert forecast.seconds_left() == pytest.approx(100)
    forecast(Event("done", jobs[1]))
    forecast(Event("busy", jobs[2]))
    forecast(Event("failed", jobs[5]))
    assert forecast.seconds_left() == pytest.approx((5 + 5 + 5) / 2)
    assert (forecast.settled, forecast.total) == (3, 6)
    for one in jobs[2:5]:
        forecast(Event("skipped", one))
    assert forecast.seconds_left() == 0


def test_lines_on_a_terminal(tmp_path):
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100)
    jobs = [job(0), job(1, diverges=True)]
    with show_progress(jobs, console=console) as watch:

        def look(event):
            watch(event)
            if event.kind == "step":
                watch._live.refresh()

        sweep(jobs, tmp_path, execute=execute, watch=look)
    text = file.getvalue()
    for part in ("job 0", "1/3  loss 1  50.0 %", "3/3  loss 0.333", "1/2 runs", "job 1: the loss is not finite"):
        assert part in text


def test_quiet_elsewhere(tmp_path):
    file = io.StringIO()
    jobs = [job(0), job(1, diverges=True)]
    with show_progress(jobs, console=Console(file=file)) as watch:
        sweep(jobs, tmp_path, execute=execute, watch=watch)
    assert file.getvalue() == ""
    said = []
    with show_progress(jobs, console=Console(file=file), say=said.append, every=0.0) as watch:
        sweep(jobs, tmp_path, execute=execute, watch=watch)
    assert file.getvalue() == ""
    assert said == ["1/2 runs", "job 1: the loss is not finite", "2/2 runs, 0 s left"]


def test_plan_says_what_would_be_done(tmp_path):
    done, started, new, failed = (job(number, epochs=10) for number in range(4))
    finish(done.config, tmp_path)
    for one, name, content in ((started, "metrics.jsonl", ""), (failed, "failure.json", '{"error": "x"}')):
        folder = RunFolder(tmp_path / one.run_id)
        with folder.lock():
            folder.write("config.yaml", one.config.to_yaml().encode())
            folder.write(name, content.encode())
    found = plan([done, started, new, failed, new], tmp_path)
    assert (found.done, found.resumed, found.new, found.failed) == ((done,), (started,), (new,), (failed,))
    assert found.unknown == 2
    assert found.seconds is None
    assert plan([failed], tmp_path, retry_failed=True).new == (failed,)
    assert plan([done], tmp_path).seconds == 0


def test_plan_knows_the_time_from_finished_runs_first(tmp_path):
    done, same, similar = job(0, seeds=(0, 1)), job(0, seeds=(2, 3)), job(0, seeds=(4, 5), epochs=6)
    finish(done.config, tmp_path, seconds=30.0)
    asked = []

    def measure(config):
        asked.append(config)
        return 7.0

    others = [job(0, seeds=(seed,)) for seed in (6, 7)]
    found = plan([done, same, similar, *others], tmp_path, workers=2, measure=measure)
    assert found.expected == {
        same.run_id: 30.0,
        similar.run_id: 60.0,
        **{one.run_id: 21.0 for one in others},
    }
    assert len(asked) == 1
    assert found.seconds == pytest.approx((30 + 60 + 21 + 21) / 2)


def test_plan_counts_epochs_of_runs_to_resume(tmp_path):
    done, begun = job(0), job(0, seeds=(1,))
    finish(done.config, tmp_path, seconds=30.0)
    folder = RunFolder(tmp_path / begun.run_id)
    with folder.lock():
        folder.write("config.yaml", begun.config.to_yaml().encode())
        folder.write("metrics.jsonl", b'{"epoch": 1, "seed": 1}\n{"epoch": 2, "seed": 1}\n{"epo')
    assert plan([done, begun], tmp_path).expected == {begun.run_id: pytest.approx(10.0)}


def test_plan_survives_damaged_folders(tmp_path):
    fine, damaged, begun = job(0), job(0, seeds=(1,)), job(0, seeds=(2,))
    for one in (fine, damaged):
        finish(one.config, tmp_path, seconds=30.0)
    (tmp_path / damaged.run_id / "result.json").write_text("{")
    folder = RunFolder(tmp_path / begun.run_id)
    with folder.lock():
        folder.write("config.yaml", begun.config.to_yaml().encode())
        folder.write("metrics.jsonl", b"\xff\n")
    found = plan([fine, damaged, begun], tmp_path)
    assert (found.done, found.new, found.resumed) == ((fine,), (damaged,), (begun,))
    assert found.expected == {damaged.run_id: 30.0, begun.run_id: 30.0}


def test_damage_is_told_at_once(tmp_path):
    file, said = io.StringIO(), []
    with show_progress([job(0)], console=Console(file=file, force_terminal=True, width=100)) as watch:
        watch(Event("damaged", job(0), reason="[/b] is damaged"))
    assert "job 0: [/b] is damaged" in file.getvalue()
    with show_progress([job(0)], console=Console(file=file), say=said.append) as watch:
        watch(Event("damaged", job(0), reason="it is damaged"))
    assert said == ["job 0: it is damaged"]
