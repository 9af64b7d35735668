"""A classifier that is saved predicts the same when it is read again, or says why it cannot be saved."""

from __future__ import annotations

import json

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from torch import nn

import postmax as pm
from postmax.errors import DataError, InputError
from postmax.losses import FPMLLoss
from postmax.methods.parts.stages import Stages
from postmax.tabular.columns import Encoder, array_columns
from postmax.tabular.preparation import Preparation

QUICK = {"max_iter": 3, "n_folds": 2, "random_state": 0}


def flowers() -> tuple[np.ndarray, np.ndarray]:
    rows, truth = load_iris(return_X_y=True)
    labels = pm.Transition.symmetric(3, 0.3).corrupt(truth, seed=0).labels.numpy()
    return rows, np.array(["setosa", "versicolor", "virginica"])[labels]


def frame() -> pd.DataFrame:
    """A column of text with spaces, a column of truth values, one with missing numbers, and whole numbers."""
    rows, _ = flowers()
    found = pd.DataFrame(rows, columns=["a", "b", "c", "d"])
    found.loc[::7, "b"] = np.nan
    found["size"] = np.where(rows[:, 2] > 3, " big", "small")
    found["long"] = rows[:, 0] > 5.8
    found["code"] = (rows[:, 3] * 2).astype(int)
    return found


def assert_the_same(model, folder, rows):
    model.save(folder)
    predictor = pm.load(folder)
    np.testing.assert_allclose(predictor.predict_proba(rows), model.predict_proba(rows), atol=1e-6)
    np.testing.assert_allclose(predictor.label_proba(rows), model.label_proba(rows), atol=1e-6)
    assert predictor.classes_.tolist() == [str(name) for name in model.classes_]
    assert (predictor.predict(rows) == model.predict(rows).astype(str)).all()
    return predictor


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param({"noise": None}, marks=pytest.mark.slow),
        {"noise": 0.3, "correction": "forward"},
        {"noise": "symmetric", "correction": "factored", "divergence": "sl:0.5"},
        {"loss": "sl-pml"},
        pytest.param({"loss": "gce", "loss_options": {"q": 0.5}, "network": "residual"}, marks=pytest.mark.slow),
        pytest.param({"network": "additive"}, marks=pytest.mark.slow),
        pytest.param({"method": "elr"}, marks=pytest.mark.slow),
        {"method": "co-teaching", "loss": "gan-pml"},
        pytest.param({"method": "volminnet"}, marks=pytest.mark.slow),
        {"method": "t-revision"},
    ],
    ids=str,
)
def test_a_saved_classifier_predicts_the_same(settings, tmp_path):
    rows, labels = flowers()
    assert_the_same(pm.FPMLClassifier(**QUICK, **settings).fit(rows, labels), tmp_path, rows)


@pytest.mark.parametrize("settings", [{}, {"categorical_features": ["code"]}], ids=str)
def test_columns_of_a_frame_are_read_by_name(settings, tmp_path):
    rows, (_, labels) = frame(), flowers()
    model = pm.FPMLClassifier(**QUICK, **settings).fit(rows, labels)
    predictor = assert_the_same(model, tmp_path / "model", rows)
    file = tmp_path / "new.csv"
    rows[rows.columns[::-1]].assign(more=1).to_csv(file, index=False)
    np.testing.assert_allclose(predictor.predict_proba(file), model.predict_proba(rows), atol=1e-6)
    unknown = rows.assign(size="huge")
    with pytest.raises(DataError, match="column 'size' holds 'huge'"):
        predictor.predict_proba(unknown)
    found = predictor.predict_proba(unknown, unknown="ignore")
    np.testing.assert_allclose(found, model.predict_proba(unknown), atol=1e-6)


def test_numbers_that_are_categories_need_no_names(tmp_path):
    rows, labels = flowers()
    rows = np.round(rows)
    rows[3, 3] = np.nan
    model = pm.FPMLClassifier(**QUICK, categorical_features=[3]).fit(rows, labels)
    assert_the_same(model, tmp_path, rows)


def test_rows_that_came_in_parts(tmp_path):
    rows, labels = flowers()
    model = pm.FPMLClassifier(random_state=0)
    for part in np.random.default_rng(0).permutation(len(rows)).reshape(3, -1):
        model.partial_fit(rows[part], labels[part], classes=np.unique(labels))
    assert_the_same(model, tmp_path, rows)


def test_the_onnx_file_has_all_of_it_inside(tmp_path):
    rows, labels = flowers()
    model = pm.FPMLClassifier(**QUICK).fit(rows, labels)
    predictor = assert_the_same(model, tmp_path, rows)
    exported = predictor.export(tmp_path / "model.onnx")
    assert exported.rows > 300
    assert exported.difference < 1e-5

    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"rows": rows.astype(np.float32)})
    np.testing.assert_allclose(found, model.predict_proba(rows), atol=1e-5)
    with pytest.raises(InputError, match=r"Export to an \.onnx file"):
        predictor.export(tmp_path / "plain.safetensors")


def test_the_file_is_always_the_same_and_says_what_the_noise_is(tmp_path):
    rows, labels = flowers()
    model = pm.FPMLClassifier(**QUICK, noise=0.25).fit(rows, labels)
    for name in "ab":
        model.save(tmp_path / name)
    first, second = ((tmp_path / name / "model.safetensors").read_bytes() for name in "ab")
    assert first == second
    with safe_open(tmp_path / "a" / "model.safetensors", framework="pt") as file:
        about = json.loads(file.metadata()["postmax"])["about"]
    assert about["noise_rate"] == pytest.approx(0.25, abs=1e-6)
    assert about["rows"] == 150
    # a model that was loaded can be saved again
    pm.load(tmp_path / "a").save(tmp_path / "c")
    assert (tmp_path / "c" / "model.safetensors").read_bytes() == first


def test_a_damaged_file_is_refused(tmp_path):
    rows, labels = flowers()
    pm.FPMLClassifier(**QUICK, network="linear").fit(rows, labels).save(tmp_path)
    file = tmp_path / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match="checksum"):
        pm.load(tmp_path)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"estimator": RandomForestClassifier(3)}, "RandomForestClassifier"),
        ({"network": nn.Linear(4, 3)}, "not by name"),
        ({"loss": FPMLLoss("sl", reduction="none")}, "loss='sl-pml'"),
        ({"divergence": pm.divergences.get("gan")}, "plain value"),
    ],
    ids=["estimator", "module", "loss", "divergence"],
)
def test_what_cannot_be_saved_is_refused_with_the_reason(settings, reason, tmp_path):
    rows, labels = flowers()
    model = pm.FPMLClassifier(**QUICK, **settings).fit(rows, labels)
    with pytest.raises(InputError, match=reason):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_text_without_names_cannot_be_saved(tmp_path):
    rows, labels = flowers()
    unnamed = pd.DataFrame({0: rows[:, 0], 1: np.where(rows[:, 2] > 3, "big", "small")})
    with pytest.raises(InputError, match="named by strings"):
        pm.FPMLClassifier(**QUICK).fit(unnamed, labels).save(tmp_path)


def test_preparation_is_what_the_encoder_does():
    generator = np.random.default_rng(0)
    rows = generator.normal(3, 2, (50, 4))
    rows[::5, 0], rows[:, 1], rows[:, 2] = np.nan, 7.0, generator.integers(0, 3, 50)
    columns, names = array_columns(rows)
    encoder, features = Encoder.fit(columns, names, {2})
    later = generator.normal(3, 20, (30, 4))
    later[::4, 3], later[::3, 2] = np.nan, 2
    prepare = Preparation(encoder, one_hot=False)
    torch.testing.assert_close(prepare(torch.from_numpy(rows)), features)
    expected = encoder.encode(array_columns(later)[0])
    torch.testing.assert_close(prepare(torch.from_numpy(later)), expected)


def test_the_network_that_answers_is_that_of_the_best_epoch():
    """A method in stages has several networks. In its last epoch another one answers than in the best epoch."""
    rows, labels = flowers()
    model = pm.FPMLClassifier(method="t-revision", max_iter=6, n_folds=2, random_state=0).fit(rows, labels)
    (lanes,) = model._committee.networks
    assert not any(isinstance(answer, Stages) for answer in lanes.answers)
    held_out = [min(e["held_out_loss"] for e in model.history_ if e["fold"] == fold) for fold in (0, 1)]
    assert np.mean(held_out) < np.log(3)
