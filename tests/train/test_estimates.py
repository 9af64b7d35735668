"""Estimated noise is estimated once."""

import json
import multiprocessing
import os
from types import SimpleNamespace

import pytest
import torch

from postmax.data import Dataset
from postmax.errors import DataError
from postmax.estimation import estimate_transition
from postmax.train import estimates
from postmax.train.estimates import estimated_transition
from postmax.transition import Transition

pytestmark = pytest.mark.thorough  # each of these tests estimates a matrix


@pytest.fixture
def rows(monkeypatch, tmp_path):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path))
    x = torch.linspace(-3, 3, 600)[:, None].repeat(1, 2)
    labels = (x[:, 0] + 0.3 * torch.randn(600, generator=torch.Generator().manual_seed(0)) > 0).long()
    return Dataset("line", x, labels, ("a", "b"))


def test_same_rows_same_labels_one_estimate(rows, tmp_path, monkeypatch):
    first = estimated_transition(rows, rows.inputs)
    monkeypatch.setattr(estimates, "estimate_transition", lambda *_, **__: pytest.fail("estimated again"))
    again = estimated_transition(rows, rows.inputs)
    assert torch.equal(first.matrix, again.matrix)
    assert len(list((tmp_path / "estimates").iterdir())) == 1


def test_other_labels_and_other_rows_are_estimated_anew(rows, tmp_path):
    for train, inputs in (
        (rows, rows.inputs),
        (rows.with_labels(1 - rows.labels), rows.inputs),
        (rows, rows.inputs + 0.1),
    ):
        estimated_transition(train, inputs)
    assert len(list((tmp_path / "estimates").iterdir())) == 3


def test_damage_is_named(rows, tmp_path):
    estimated_transition(rows, rows.inputs)
    path = next((tmp_path / "estimates").iterdir())
    path.write_text(path.read_text()[:30])
    with pytest.raises(DataError, match=f"{path.name} is damaged .* delete it"):
        estimated_transition(rows, rows.inputs)


def test_the_first_answer_is_the_one_that_was_kept_to_the_last_bit(tmp_path, monkeypatch):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path))
    random = (torch.rand(10, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(i)) for i in range(99))
    matrices = (Transition(one / one.sum(1, keepdim=True), definition="how it was estimated") for one in random)
    # Normalised again it is another, as about every second is.
    fresh = next(one for one in matrices if not torch.equal(one.matrix, Transition(one).matrix))
    monkeypatch.setattr(estimates, "estimate_transition", lambda *_, **__: SimpleNamespace(transition=fresh))
    train = Dataset("ten", torch.rand(20, 2), torch.arange(20) % 10, tuple("abcdefghij"))
    first, again = (estimated_transition(train, train.inputs) for _ in range(2))
    assert torch.equal(first.matrix, again.matrix)
    assert first.definition == again.definition


@pytest.mark.parametrize(
    "kept",
    [
        *("[]", "null", "{}", '{"matrix": null}', '{"matrix": "no"}', '{"matrix": [[1, 0], [0]]}', "\xff"),
        json.dumps({"matrix": torch.eye(3).tolist()}),
    ],
)
def test_what_is_no_estimate_of_these_classes_is_named(rows, tmp_path, kept):
    estimated_transition(rows, rows.inputs)
    path = next((tmp_path / "estimates").iterdir())
    path.write_bytes(kept.encode("latin-1"))
    with pytest.raises(DataError, match=f"{path.name} is damaged .* delete it"):
        estimated_transition(rows, rows.inputs)


def test_what_cannot_be_read_is_named(rows, tmp_path):
    estimated_transition(rows, rows.inputs)
    path = next((tmp_path / "estimates").iterdir())
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match=f"{path.name} cannot be read"):
        estimated_transition(rows, rows.inputs)


def ask(rows, traces):
    """The body of a process that needs the estimate."""

    def estimate(*arguments, **options):
        (traces / f"estimated-{os.getpid()}").touch()
        return estimate_transition(*arguments, **options)

    estimates.estimate_transition = estimate
    torch.set_num_threads(1)
    estimated_transition(rows, rows.inputs)


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
    assert isinstance(estimated_transition(rows, rows.inputs), Transition)
