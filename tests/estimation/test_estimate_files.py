"""Saving and loading an estimate."""

import json

import pytest
import torch
from synthetic import MATRICES, problem

from postmax import Transition, TransitionEstimate, estimate_transition
from postmax.errors import DataError


def estimate(labels=None):
    data = problem(MATRICES[3], 200)
    labels = data.labels if labels is None else [labels[y] for y in data.labels]
    return estimate_transition(data.probabilities, labels, method="fpml", replicates=5, level=0.9)


@pytest.mark.parametrize("names", [None, ["ä", "b", "c"], [-5, 0, 70]])
def test_what_is_saved_is_loaded(tmp_path, names):
    saved = estimate(names)
    saved.save(tmp_path / "noise.json")
    loaded = TransitionEstimate.load(tmp_path / "noise.json")
    assert loaded.to_dict() == {**saved.to_dict(), "matrix": loaded.matrix.tolist()} | {
        "condition_number": loaded.condition_number
    }
    torch.testing.assert_close(loaded.matrix, saved.matrix, rtol=1e-15, atol=1e-16)
    assert loaded.classes == saved.classes
    assert loaded.noise_rate_interval == saved.noise_rate_interval
    assert loaded.prior.dtype == loaded.interval[0].dtype == torch.float64


def test_reasons_survive_with_their_classes(tmp_path):
    p = torch.tensor([[0.8, 0.0, 0.2], [0.1, 0.0, 0.9]]).repeat(20, 1)
    saved = estimate_transition(p, torch.arange(40) % 2 * 2, replicates=2)
    saved.save(tmp_path / "noise.json")
    assert TransitionEstimate.load(tmp_path / "noise.json").unidentified == saved.unidentified
    assert 1 in saved.unidentified


def test_a_singular_estimate_is_saved_too(tmp_path):
    p = torch.full((20, 2), 0.5)
    saved = estimate_transition(p, torch.arange(20) % 2, method="anchor", replicates=2)
    assert saved.condition_number > 1e15
    saved.save(tmp_path / "noise.json")
    torch.testing.assert_close(TransitionEstimate.load(tmp_path / "noise.json").matrix, saved.matrix)


def test_the_matrix_serves_as_a_transition(tmp_path):
    estimate().save(tmp_path / "noise.json")
    loaded = TransitionEstimate.load(tmp_path / "noise.json")
    assert isinstance(loaded.transition, Transition)
    assert str(tmp_path) in loaded.transition.definition


def test_the_home_folder_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    estimate().save("~/noise.json")
    assert TransitionEstimate.load("~/noise.json").rows == 200


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.json does not exist"):
        TransitionEstimate.load(tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    "content",
    [b"{", b"\xff\xfe\x00", b"[]", b"3", b"null", b"{}", b'{"format": "postmax transition estimate 1"}'],
)
def test_what_is_no_estimate_is_refused(tmp_path, content):
    (tmp_path / "noise.json").write_bytes(content)
    with pytest.raises(DataError, match=r"noise\.json is not a transition estimate, or it is damaged"):
        TransitionEstimate.load(tmp_path / "noise.json")


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "noise.json").touch()
    with pytest.raises(DataError, match=r"noise\.json is empty"):
        TransitionEstimate.load(tmp_path / "noise.json")


def test_another_format_is_named(tmp_path):
    (tmp_path / "noise.json").write_text('{"format": "postmax transition estimate 2"}')
    with pytest.raises(DataError, match="is a 'postmax transition estimate 2', not a 'postmax transition estimate 1'"):
        TransitionEstimate.load(tmp_path / "noise.json")


@pytest.mark.parametrize(
    "damage",
    [
        {"matrix": [[0.9, 0.2], [0.0, 1.0]]},
        {"matrix": [[1.0, 0.0]]},
        {"matrix": [[float("nan"), 0.0], [0.0, 1.0]]},
        {"matrix": "no"},
        {"prior": "no"},
        {"lower": [[1.0], [1.0, 2.0]]},
        {"unidentified": 3},
        {"classes": 3},
        {"prior": [1.0]},
        {"classes": ["a"]},
        {"lower": [[0.5]]},
    ],
)
def test_a_damaged_file_is_refused(tmp_path, damage):
    estimate().save(tmp_path / "noise.json")
    content = json.loads((tmp_path / "noise.json").read_bytes())
    (tmp_path / "noise.json").write_text(json.dumps(content | damage))
    with pytest.raises(DataError, match=r"noise\.json is not a transition estimate, or it is damaged"):
        TransitionEstimate.load(tmp_path / "noise.json")


def test_a_truncated_file_is_refused(tmp_path):
    estimate().save(tmp_path / "noise.json")
    whole = (tmp_path / "noise.json").read_bytes()
    (tmp_path / "noise.json").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged"):
        TransitionEstimate.load(tmp_path / "noise.json")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="is a folder; a file was expected"):
        TransitionEstimate.load(tmp_path)
    with pytest.raises(DataError, match="is a folder"):
        estimate().save(tmp_path)
