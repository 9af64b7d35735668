"""Estimated noise is estimated once."""

import pytest
import torch

from postmax import estimation
from postmax.data import Dataset
from postmax.errors import DataError
from postmax.train.estimates import estimated_transition
from postmax.transition import Transition


@pytest.fixture
def rows(monkeypatch, tmp_path):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path))
    x = torch.linspace(-3, 3, 600)[:, None].repeat(1, 2)
    labels = (x[:, 0] + 0.3 * torch.randn(600, generator=torch.Generator().manual_seed(0)) > 0).long()
    return Dataset("line", x, labels, ("a", "b"))


def test_same_rows_same_labels_one_estimate(rows, tmp_path, monkeypatch):
    first = estimated_transition(rows, rows.inputs)
    monkeypatch.setattr(estimation, "estimate_transition", lambda *_, **__: pytest.fail("estimated again"))
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


def test_a_folder_that_cannot_be_written_costs_only_time(rows, tmp_path):
    (tmp_path / "estimates").write_text("in the way")
    assert isinstance(estimated_transition(rows, rows.inputs), Transition)
