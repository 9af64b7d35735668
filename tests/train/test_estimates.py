"""Estimated noise is estimated once."""

import json
import multiprocessing
import os
from dataclasses import replace

import pytest
import torch
from small_runs import estimate_of

from postmax.data import Dataset
from postmax.errors import DataError
from postmax.estimation import TransitionEstimate, estimate_transition
from postmax.train import estimates
from postmax.train.estimates import estimated_noise
from postmax.transition import Transition

pytestmark = pytest.mark.thorough  # each of these tests estimates a matrix


@pytest.fixture
def rows(monkeypatch, tmp_path):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path))
    x = torch.linspace(-3, 3, 600)[:, None].repeat(1, 2)
    labels = (x[:, 0] + 0.3 * torch.randn(600, generator=torch.Generator().manual_seed(0)) > 0).long()
    return Dataset("line", x, labels, ("a", "b"))


def test_same_rows_same_labels_one_estimate(rows, tmp_path, monkeypatch):
    first = estimated_noise(rows, rows.inputs)
    monkeypatch.setattr(estimates, "estimate_transition", lambda *_, **__: pytest.fail("estimated again"))
    again = estimated_noise(rows, rows.inputs)
    assert torch.equal(first.matrix, again.matrix)
    assert len(list((tmp_path / "estimates").iterdir())) == 1


def test_other_labels_and_other_rows_are_estimated_anew(rows, tmp_path):
    for train, inputs in (
        (rows, rows.inputs),
        (rows.with_labels(1 - rows.labels), rows.inputs),
        (rows, rows.inputs + 0.1),
    ):
        estimated_noise(train, inputs)
    assert len(list((tmp_path / "estimates").iterdir())) == 3


def test_damage_is_named(rows, tmp_path):
    estimated_noise(rows, rows.inputs)
    path = next((tmp_path / "estimates").iterdir())
    path.write_text(path.read_text()[:30])
    with pytest.raises(DataError, match=f"{path.name} is damaged .* delete it"):
        estimated_noise(rows, rows.inputs)


def test_the_first_answer_is_the_one_that_was_kept_to_the_last_bit(tmp_path, monkeypatch):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path))
    random = (torch.rand(10, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(i)) for i in range(99))
    matrices = (Transition(one / one.sum(1, keepdim=True), definition="how it was estimated") for one in random)
    # Normalised again it is another, as about every second is.
    fresh = next(one for one in matrices if not torch.equal(one.matrix, Transition(one).matrix))
    monkeypatch.setattr(estimates, "estimate_transition", lambda *_, **__: estimate_of(fresh, "abcdefghij"))
    train = Dataset("ten", torch.rand(20, 2), torch.arange(20) % 10, tuple("abcdefghij"))
    first, again = (estimated_noise(train, train.inputs) for _ in range(2))
    assert torch.equal(first.matrix, again.matrix)
    assert first.transition.definition == again.transition.definition


@pytest.mark.parametrize(
    "kept",
    [
        *("[]", "null", "{}", '{"matrix": null}', '{"matrix": "no"}', '{"matrix": [[1, 0], [0]]}', "\xff"),
        json.dumps({"matrix": torch.eye(3).tolist()}),
    ],
)
def test_what_is_no_estimate_of_these_classes_is_named(rows, tmp_path, kept):
    estimated_noise(rows, rows.inputs)
    path = next((tmp_path / "estimates").iterdir())
    path.write_bytes(kept.encode("latin-1"))
    with pytest.raises(DataError, match=f"{path.name} is damaged .* delete it"):
        estimated_noise(rows, rows.inputs)


def test_what_cannot_be_read_is_named(rows, tmp_path):
    estimated_noise(rows, rows.inputs)
    path = next((tmp_path / "estimates").iterdir())
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match=f"{path.name} cannot be read"):
        estimated_noise(rows, rows.inputs)


def ask(rows, traces):
    """The body of a process that needs the estimate."""

    def estimate(*arguments, **options):
        (traces / f"estimated-{os.getpid()}").touch()
        return estimate_transition(*arguments, **options)

    estimates.estimate_transition = estimate
    torch.set_num_threads(1)
    estimated_noise(rows, rows.inputs)


def test_processes_that_need_the_same_estimate_at_once_make_it_once(rows, tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=ask, args=(rows, traces)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(list(traces.iterdir())) == 1
    assert len(list((tmp_path / "estimates").iterdir())) == 1


def test_a_folder_that_cannot_be_written_costs_only_time(rows, tmp_path):
    (tmp_path / "estimates").write_text("in the way")
    assert isinstance(estimated_noise(rows, rows.inputs), TransitionEstimate)


def test_the_interval_is_kept_too(rows, monkeypatch):
    first = estimated_noise(rows, rows.inputs)
    monkeypatch.setattr(estimates, "estimate_transition", lambda *_, **__: pytest.fail("estimated again"))
    again = estimated_noise(rows, rows.inputs)
    low, high = first.noise_rate_interval
    assert low <= first.noise_rate <= high
    assert first.to_dict() == again.to_dict()


def test_a_matrix_that_an_older_version_kept_stays_to_the_last_bit(rows, tmp_path):
    estimated_noise(rows, rows.inputs)
    path = next((tmp_path / "estimates").iterdir())
    old = [[0.9, 0.1], [0.3, 0.7]]
    path.write_text(json.dumps({"matrix": old}))
    found = estimated_noise(rows, rows.inputs)
    assert torch.equal(found.matrix, Transition(old).matrix)
    assert found.noise_rate_interval[0] <= found.noise_rate
    assert torch.equal(estimated_noise(rows, rows.inputs).matrix, found.matrix)


def test_the_same_rows_with_other_names(rows):
    estimated_noise(rows, rows.inputs)
    assert estimated_noise(replace(rows, classes=("no", "yes")), rows.inputs).classes == ("no", "yes")
