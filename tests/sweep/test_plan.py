"""The plan of a sweep: what it would do and how long that would take."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from fake_runs import finish, job

from postmax.progress import listening
from postmax.runs.folder import RunFolder
from postmax.sweep import durations
from postmax.sweep.plan import plan
from postmax.train.config import make_config
from postmax.train.timing import Cost, NotHere


class Stopwatch:
    """Measures nothing: every run costs the same."""

    def __init__(self, cost, estimates=0.0, lacking=None):
        self.cost, self.estimates, self.lacking = cost, estimates, lacking
        self.asked, self.threads = [], []

    def measure_run(self, config):
        if config.data.name == self.lacking:
            raise NotHere(f"{self.lacking} is not here")
        self.asked.append(config)
        self.threads.append(torch.get_num_threads())
        return self.cost

    def measure_estimates(self, config):
        return self.estimates


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
    others = [job(0, seeds=(seed,)) for seed in (6, 7)]
    stopwatch = Stopwatch(Cost(once=5.0, start=1.0, epoch=7.0))
    found = plan([done, same, similar, *others], tmp_path, workers=2, measure=stopwatch, start_up=3.0)
    # Finished runs tell how long the training is. What comes before it is measured once for each number of seeds.
    assert found.expected == {
        same.run_id: 31.0,
        similar.run_id: 61.0,
        **{one.run_id: 22.0 for one in others},
    }
    assert len(stopwatch.asked) == 2
    # The command starts, and then its two workers; each reads the data once.
    assert found.seconds == pytest.approx(2 * 3 + 5 + (31 + 61 + 22 + 22) / 2)


def test_without_work_nothing_is_measured_and_nothing_takes_time(tmp_path):
    done = job(0)
    finish(done.config, tmp_path)
    stopwatch = Stopwatch(Cost(5.0, 1.0, 7.0))
    assert plan([done], tmp_path, measure=stopwatch, start_up=3.0).seconds == 0
    assert stopwatch.asked == []


def with_loss(one, loss, **changes):
    return replace(one, config=make_config({**one.config.model_dump(mode="json"), "loss": loss, **changes}))


def test_when_the_time_for_measuring_is_over_alike_runs_share_what_was_measured(tmp_path, monkeypatch):
    first, wider = job(0), job(1)
    jobs = [first, *(with_loss(first, name) for name in ("gce", "mae", "sce")), wider, with_loss(wider, "gce")]
    monkeypatch.setattr(durations, "_PATIENCE_SECONDS", -1.0)
    stopwatch = Stopwatch(Cost(0.0, 1.0, 2.0))
    told = []
    with listening(lambda stage: told.append(str(stage))):
        found = plan(jobs, tmp_path, measure=stopwatch)
    # One run of each network is measured, whatever the time is, and the other losses take over its time.
    assert [config.model.options["number"] for config in stopwatch.asked] == [0, 1]
    assert found.expected == {one.run_id: 7.0 for one in jobs}
    assert told[-1] == "measuring: 6 of 6 kinds of runs (100 %)"
    monkeypatch.setattr(durations, "_PATIENCE_SECONDS", 1e6)
    stopwatch = Stopwatch(Cost(0.0, 1.0, 2.0))
    plan(jobs, tmp_path, measure=stopwatch)
    assert len(stopwatch.asked) == len(jobs)


def test_estimates_are_counted_once_for_the_jobs_that_share_them(tmp_path):
    estimated = {"noise": "symmetric:0.2", "transition": "estimated"}
    corrected = {"name": "fpml", "correction": "forward"}
    one, two = (with_loss(job(number), corrected, **estimated) for number in (0, 1))
    other = with_loss(job(2), corrected, noise="symmetric:0.4", transition="estimated")
    unused = with_loss(job(3), "ce", **estimated)
    found = plan([unused, one, two, other], tmp_path, measure=Stopwatch(Cost(0.0, 0.0, 1.0), estimates=50.0))
    assert found.expected == {unused.run_id: 3.0, one.run_id: 53.0, two.run_id: 3.0, other.run_id: 53.0}


@pytest.mark.parametrize(("patience", "expected"), [(1e9, (101.0, 1.0, 1.0)), (-1.0, (101.0, 101.0, 101.0))])
def test_estimates_that_are_kept_cost_nothing(tmp_path, monkeypatch, patience, expected):
    """Only when the time for measuring is over, estimates are taken to last as long as the longest so far."""
    monkeypatch.setattr(durations, "_PATIENCE_SECONDS", patience)
    corrected = {"name": "fpml", "correction": "forward"}
    noises = ("symmetric:0.2", "symmetric:0.3", "symmetric:0.4")
    jobs = [with_loss(job(0, epochs=1), corrected, noise=noise, transition="estimated") for noise in noises]
    stopwatch = Stopwatch(Cost(0.0, 0.0, 1.0))
    stopwatch.measure_estimates = lambda config: 100.0 if config.noise == noises[0] else 0.0
    assert tuple(plan(jobs, tmp_path, measure=stopwatch).expected.values()) == expected


def test_without_the_data_the_plan_says_why_the_time_is_not_known(tmp_path):
    here, absent = job(0), job(1)
    absent = replace(absent, config=make_config({**absent.config.model_dump(mode="json"), "data": {"name": "cifar10"}}))
    stopwatch = Stopwatch(Cost(0.0, 1.0, 2.0), lacking="cifar10")
    found = plan([here, absent], tmp_path, measure=stopwatch)
    assert found.new == (here, absent)
    assert found.expected == {here.run_id: 7.0}
    assert found.reasons == {absent.run_id: "cifar10 is not here"}
    assert found.seconds is None


def test_measuring_uses_the_threads_of_a_worker(tmp_path, monkeypatch):
    monkeypatch.setattr("postmax.sweep.plan.cores", lambda: 6)
    before = torch.get_num_threads()
    stopwatch = Stopwatch(Cost(0.0, 1.0, 2.0))
    plan([job(0)], tmp_path, workers=2, measure=stopwatch)
    assert stopwatch.threads == [3]
    assert torch.get_num_threads() == before


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
