"""What is believed about each label, against a loop over rows and against the truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import postmax as pm
from postmax.fitting.doubt import doubt, largest_confusions
from postmax.tabular.noise import label_quality

NOISE = pm.Transition([[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.2, 0.1, 0.7]])


def rows(count: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Posteriors, true classes drawn from them, and labels."""
    generator = np.random.default_rng(0)
    posterior = generator.dirichlet([0.3] * 3, count)
    truth = np.array([generator.choice(3, p=p) for p in posterior])
    return posterior, truth, NOISE.corrupt(truth, seed=1).labels.numpy()


def test_it_is_bayes_rule_for_each_row():
    posterior, _, labels = rows(30)
    found = doubt(posterior, labels, NOISE)
    for row, label in enumerate(labels):
        joint = [posterior[row, i] * NOISE.matrix[i, label].item() for i in range(3)]
        assert found.right[row] == pytest.approx(joint[label] / sum(joint))
        assert found.suggested[row] == np.argmax(joint)
        assert found.probability[row] == pytest.approx(max(joint) / sum(joint))


def test_it_says_the_same_as_the_classifier():
    posterior, _, labels = rows()
    found = doubt(posterior, labels, NOISE)
    quality = label_quality(torch.from_numpy(posterior), torch.from_numpy(labels), NOISE)
    np.testing.assert_allclose(found.right, quality, atol=1e-12)


def test_expected_numbers_are_those_of_the_truth():
    posterior, truth, labels = rows(20_000)
    found = doubt(posterior, labels, NOISE)
    assert found.wrong == pytest.approx((labels != truth).sum(), rel=0.03)
    for i in range(3):
        for j in range(3):
            assert found.confusions[i, j] == pytest.approx(((truth == i) & (labels == j)).sum(), rel=0.05, abs=30)
    assert (found.suggested == truth).mean() > (labels == truth).mean()


def test_the_most_doubtful_come_first():
    found = doubt(*rows()[::2], NOISE)
    assert (np.diff(found.right[found.order]) >= 0).all()


def test_a_label_that_no_class_can_have_says_nothing():
    posterior = np.array([[0.2, 0.5, 0.3]])
    found = doubt(posterior, np.array([2]), pm.Transition([[1.0, 0, 0], [0, 1, 0], [0.5, 0.5, 0]]))
    assert found.right[0] == pytest.approx(0.3)
    assert found.suggested[0] == 1


def test_largest_confusions_leave_out_the_diagonal_and_parts_of_a_row():
    counts = np.array([[50.0, 12.0, 0.3], [0.0, 40.0, 5.0], [0.0, 0.0, 9.0]])
    found = largest_confusions(counts, ["a", "b", "c"], 10)
    assert [(one.true, one.label, one.rows) for one in found] == [("a", "b", 12.0), ("b", "c", 5.0)]
    assert found[0].share == pytest.approx(12 / 62.3)
