"""An estimate tells how far it is, and its numbers do not depend on who listens."""

import pytest
import torch

import postmax as pm
from postmax.estimation import network
from postmax.estimation.cost import measure_estimate_seconds
from postmax.estimation.threads import one_thread


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    monkeypatch.setattr(network, "_MIN_STEPS", 60)
    monkeypatch.setattr(network, "_EPOCHS", 5)


def rows(n=400):
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n) % 3
    return torch.eye(3)[labels] * 3 + torch.randn(n, 3, generator=generator), labels


def estimate(**options):
    features, labels = rows()
    return pm.estimate_transition(None, labels, features=features, replicates=4, **options)


def test_every_part_of_the_default_estimate_is_told():
    told = []
    estimate(progress=told.append)
    whole = [stage.what for stage in told if stage.share == 1]
    assert whole == [
        "cross-fitting networks",
        "unmixing the probabilities",
        "cross-fitting networks with the first estimate",
        "drawing rows again for the intervals",
    ]
    assert "fitting the matrix" in {stage.what for stage in told}
    assert str(told[-1]) == "drawing rows again for the intervals: 4 of 4 times (100 %)"


@pytest.mark.parametrize(
    ("method", "what"),
    [("hoc", "finding neighbours"), ("volmin", "training networks"), ("confident-joint", "cross-fitting")],
)
def test_other_estimators_tell_too(method, what):
    told = []
    estimate(method=method, progress=told.append)
    assert any(stage.what.startswith(what) for stage in told)


def test_the_numbers_do_not_depend_on_who_listens(capfd):
    heard, alone = estimate(progress=lambda stage: torch.rand(0)), estimate()
    assert torch.equal(heard.matrix, alone.matrix)
    assert heard.noise_rate_interval == alone.noise_rate_interval
    assert capfd.readouterr() == ("", "")


def test_small_work_uses_one_thread_and_gives_the_others_back():
    before = torch.get_num_threads()
    seen = set()
    try:
        torch.set_num_threads(3)
        estimate(progress=lambda stage: seen.add((stage.what, torch.get_num_threads())))
        assert torch.get_num_threads() == 3
        assert {threads for what, threads in seen if "networks" in what or "intervals" in what} == {1}
        with pytest.raises(KeyError), one_thread(small=True):
            raise KeyError
        assert torch.get_num_threads() == 3
        with one_thread(small=False):
            assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_the_cost_of_an_estimate_grows_with_its_steps(monkeypatch):
    features, labels = rows()
    monkeypatch.setattr("postmax.estimation.cost._seconds_of_a_step", lambda *_: 1.0)
    short = measure_estimate_seconds(features, labels, 3, replicates=2)
    # 320 of 400 rows are trained on in 8 batches of 40; 60 steps at least are 8 epochs; there are two cross-fits.
    assert 128 <= short < 135
    monkeypatch.setattr(network, "_EPOCHS", 16)
    assert 256 <= measure_estimate_seconds(features, labels, 3, replicates=2) < 263
