"""The plan of a sweep: what it would do and how long that would take."""

from __future__ import annotations

import pytest
from fake_runs import finish, job

from postmax.runs.folder import RunFolder
from postmax.sweep.plan import plan


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
