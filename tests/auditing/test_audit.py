"""The audit of rows and of a fitted classifier, and what its result offers."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import average_precision_score

import postmax as pm
from postmax.auditing import LabelTable
from postmax.errors import InputError


def rows_with_noise(count=200, seed=0):
    """Two features, three classes around the corners of a triangle, a quarter of the labels wrong, and the truth."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, 3, count)
    corners = np.array([[0, 0], [4, 0], [0, 4]])
    labels = pm.Transition.symmetric(3, 0.25).corrupt(torch.from_numpy(truth), seed=seed).labels.numpy()
    return corners[truth] + generator.normal(size=(count, 2)), np.array(["ant", "bee", "cow"])[labels], truth


@pytest.fixture(scope="module")
def audited():
    rows, labels, truth = rows_with_noise()
    model = pm.FPMLClassifier(random_state=0).fit(rows, labels)
    return pm.audit(model), model, rows, labels, np.array(["ant", "bee", "cow"])[truth]


def test_planted_noise_is_found_and_corrected(audited):
    found, _, _, labels, truth = audited
    wrong = labels != truth
    assert average_precision_score(wrong, found.table["p_wrong"]) > 0.9
    assert (found.table["suggested"][wrong] == truth[wrong]).mean() > 0.9
    assert abs(found.issues.expected_wrong - wrong[found.issues.table["row"]].sum()) <= 5
    assert found.interval[0] <= wrong.mean() <= found.interval[1]
    assert (found.corrected() == truth).mean() > (labels == truth).mean() + 0.15
    assert ((found.corrected() != labels) == found.worth_changing()).all()
    assert found.worth_changing(0.9).sum() < found.worth_changing(0.1).sum()
    confused = {(one.true, one.label) for one in found.confusions}
    assert len(confused) == 6
    assert "expected wrong among these" in str(found)


def test_rows_and_a_fitted_classifier_say_the_same(audited):
    found, model, rows, labels, _ = audited
    again = pm.audit(rows, labels)
    np.testing.assert_allclose(again.table["p_wrong"], found.table["p_wrong"], atol=1e-9)
    assert found.findings == ()
    assert again.findings == ()  # clean rows give no other finding
    with pytest.raises(InputError, match="knows its labels"):
        pm.audit(model, labels)


def test_issues_are_as_many_as_are_expected_to_be_wrong_and_the_most_doubtful_first(audited):
    found = audited[0]
    assert len(found.issues) == round(found.table["p_wrong"].sum())
    doubt = found.issues.table["p_wrong"]
    assert (np.diff(doubt) <= 0).all()
    assert doubt.min() >= np.delete(found.table["p_wrong"], found.issues.table["row"]).max()
    assert found.issues.expected_precision == pytest.approx(doubt.mean())
    with pytest.raises(InputError, match="200 rows"):
        found.most_doubtful(201)
    with pytest.raises(InputError, match="from 0 to 1"):
        found.worth_changing(2)


def test_the_table_goes_to_other_tools(audited, tmp_path):
    table = audited[0].issues.table
    frame = table.to_pandas()
    assert list(frame.columns) == ["row", "given", "suggested", "p_wrong", "p_suggested"]
    assert frame["given"].tolist() == table["given"].tolist()
    table.to_csv(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [int(line["row"]) for line in lines] == table["row"].tolist()
    np.testing.assert_allclose([float(line["p_wrong"]) for line in lines], table["p_wrong"], rtol=1e-5)
    table.to_json(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())[0]["suggested"] == table["suggested"][0]
    table.to_parquet(tmp_path / "t.parquet")
    assert pd.read_parquet(tmp_path / "t.parquet")["p_wrong"].tolist() == table["p_wrong"].tolist()


def test_labels_keep_their_type():
    table = pm.audit(probabilities=np.tile([[0.9, 0.1], [0.2, 0.8]], (40, 1)), labels=[7, 9] * 40).table
    assert isinstance(table, LabelTable)
    assert set(table["given"].tolist()) == {7, 9}
    assert table.rows == 80


def test_features_that_say_nothing_judge_no_label():
    generator = np.random.default_rng(0)
    rows, labels = generator.normal(size=(200, 3)), generator.integers(0, 2, 200)
    probabilities = np.full((200, 2), 0.5) + generator.normal(size=(200, 1)) * [[0.02, -0.02]]
    found = pm.audit(rows, labels, probabilities=probabilities)
    assert found.cannot_tell
    assert len(found.issues) == 0
    assert not found.worth_changing().any()
    assert "nothing can be told" in str(found)
