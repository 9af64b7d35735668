"""How long a run takes: what is measured, and what is not."""

import json
from types import SimpleNamespace

import pytest
import torch
from official_catalogue import registered, write_cifar
from small_runs import small_config

from postmax import models
from postmax.estimation import estimate_transition
from postmax.methods import Method, Step, register
from postmax.train import estimates, timing
from postmax.train.config import make_config
from postmax.train.timing import measure_estimates, measure_run, needs_estimates

CLOCK = SimpleNamespace(now=0.0, batch=0.0)


class LateWork(Method):
    """A method whose second half takes three times as long for each batch, by a clock of its own."""

    def __init__(self, setup):
        super().__init__(setup)
        self.answer = setup.network()
        self._optimiser = setup.optimiser(list(self.answer.parameters()))

    def epoch(self, run):
        for batch in run.batches():
            value = self.loss(self.answer(batch.inputs), batch.labels).mean()
            run.update(value, self._optimiser)
            CLOCK.now += CLOCK.batch * (3 if run.number >= 10 else 1)
            yield Step(value, batch.rows)


register("late-work", LateWork, "for tests")


class LatePasses(Method):
    """A method that goes through all rows once in the first half of the training, and three times in the second."""

    def __init__(self, setup):
        super().__init__(setup)
        self.answer = setup.network()
        self._optimiser = setup.optimiser(list(self.answer.parameters()))

    def epoch(self, run):
        for turn in range(3 if run.number >= 10 else 1):
            for batch in run.batches(stream=str(turn)):
                value = self.loss(self.answer(batch.inputs), batch.labels).mean()
                run.update(value, self._optimiser)
                yield Step(value, batch.rows)


register("late-passes", LatePasses, "for tests")


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: CLOCK.now))
    return CLOCK


@pytest.mark.parametrize("seconds", [1e-3, 2.0])
def test_a_method_is_measured_in_all_parts_of_its_training(clock, seconds):
    """Short epochs are measured as they are. Of long ones the work on few rows is measured, in batches of 16."""
    clock.batch = seconds
    config = small_config("method=late-work", "epochs=20", "batch_size=32")
    rows = 456
    batches = -(-rows // 32) if seconds < 0.1 else rows / 16
    held_out = 0 if seconds < 0.1 else 113 / 3 / 16
    # Measuring stops when it has taken long enough: after the first of the quarters, which is in the second half.
    mean = (1 + 1 + 3 + 3) / 4 if seconds < 0.1 else 3
    assert measure_run(config).epoch == pytest.approx(seconds * mean * (batches + held_out), rel=0.02)


@pytest.mark.parametrize("classes", [10, 100])
def test_a_large_network_is_measured_by_a_step_and_what_the_method_computes_is_counted(monkeypatch, tmp_path, classes):
    """Even a few rows would take long in several passes through a large network."""
    name = "cifar10" if classes == 10 else "cifar100"
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: 0.0))
    monkeypatch.setattr(timing, "_seconds_of_a_step", lambda *_: 1.0)
    monkeypatch.setattr(timing, "_seconds_of_a_row", lambda *_: (0.5, 0.5))
    trained = []
    get = models.get

    def known(network, **options):
        trained.append(network)
        return get(network, **options)

    monkeypatch.setattr(models, "get", known)
    with registered(write_cifar(tmp_path), lambda read, request: read(request)):
        config = make_config(
            {
                "data": {"name": name, "root": str(tmp_path)},
                "model": "cnn8",
                "method": "late-passes",
                "loss": "ce",
                "epochs": 20,
                "accelerator": "cpu",
            }
        )
        # 100 training rows, in the mean of the quarters 1, 1, 3 and 3 times, and a third of the work for 100 test rows.
        assert measure_run(config).epoch == pytest.approx(0.5 * (2 * 100 + 100 / 3))
    assert set(trained) == {"cnn8", "small"}


def test_measuring_never_estimates_and_counts_only_what_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path))
    monkeypatch.setattr(estimates, "estimate_transition", lambda *_, **__: pytest.fail("it estimates"))
    monkeypatch.setattr(timing, "measure_estimate_seconds", lambda *_, **__: 50.0)
    config = small_config("noise=pair:0.2", "loss.correction=forward", "transition=estimated", "seeds=[0,1,2]")
    assert measure_run(config).epoch > 0
    assert measure_estimates(config) == 150.0
    part = timing.prepare(timing._ready(config), 1)
    kept = estimates.kept_at(part.train, part.train.inputs)
    kept.parent.mkdir()
    kept.write_text(json.dumps({"matrix": [[0.8, 0.2], [0.2, 0.8]]}))
    assert measure_estimates(config) == 150.0, "an older version kept the matrix alone, so a run estimates again"
    quick = estimate_transition(torch.eye(2)[torch.arange(40) % 2] * 0.6 + 0.2, torch.arange(40) % 2, replicates=2)
    quick.save(kept)
    assert measure_estimates(config) == 100.0
    kept.write_text("damaged")
    assert measure_estimates(config) == 100.0, "a run stops there, and estimates nothing"


def test_a_kept_estimate_is_the_one_that_a_run_makes(tmp_path, monkeypatch):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path))
    quick = estimate_transition(torch.eye(2)[torch.arange(40) % 2] * 0.6 + 0.2, torch.arange(40) % 2, replicates=2)
    monkeypatch.setattr(estimates, "estimate_transition", lambda *_, **__: quick)
    config = small_config("noise=pair:0.2", "loss.correction=forward", "transition=estimated")
    timing.prepare(config, 0)
    assert measure_estimates(config) == 0.0


def test_only_a_loss_that_uses_the_noise_needs_estimates():
    assert needs_estimates(small_config("loss.correction=forward", "transition=estimated"))
    assert not needs_estimates(small_config("loss=ce", "transition=estimated"))
    assert not needs_estimates(small_config("loss.correction=forward", "noise=pair:0.2"))


def test_measuring_leaves_the_threads_as_they_were():
    threads = torch.get_num_threads()
    cost = measure_run(small_config())
    assert torch.get_num_threads() == threads
    assert cost.once >= 0
    assert cost.start > 0
