"""Anchor points against the definition, and without the published bug."""

import numpy as np
import pytest
import torch
from synthetic import random_probabilities

from postmax.errors import InputError
from postmax.estimation.anchor import AnchorPoints, anchors


def largest_allowed(column, percentile):
    """The published rule for one column: the largest value strictly below the percentile."""
    if percentile is None:
        return max(column)
    threshold = np.percentile(column, percentile, method="higher")
    below = [value for value in column if value < threshold]
    return max(below) if below else max(column)


@pytest.mark.parametrize("percentile", [None, 3, 50, 97, 99.5, 100])
@pytest.mark.parametrize(("n", "k"), [(2, 2), (7, 3), (101, 4), (350, 10)])
def test_the_anchor_is_the_largest_entry_below_the_percentile(percentile, n, k):
    p = random_probabilities(n, k, seed=n)
    found = anchors(p, percentile)
    expected = [largest_allowed(p[:, i].tolist(), percentile) for i in range(k)]
    assert p[found, torch.arange(k)].tolist() == expected


@pytest.mark.parametrize("percentile", [None, 97])
def test_the_matrix_holds_the_probabilities_of_the_anchors(percentile):
    p = random_probabilities(200, 5)
    labels = torch.arange(200) % 5
    matrix = AnchorPoints(percentile).solve((p, labels), 5).matrix
    for i in range(5):
        value = largest_allowed(p[:, i].tolist(), percentile)
        row = p[p[:, i].tolist().index(value)]
        torch.testing.assert_close(matrix[i], row / row.sum())


@pytest.mark.parametrize("percentile", [None, 50, 97])
def test_the_probabilities_are_not_modified(percentile):
    """The published filter zeroes the entries it skips, which later classes read."""
    p = random_probabilities(100, 4)
    before = p.clone()
    AnchorPoints(percentile).solve((p, torch.arange(100) % 4), 4)
    assert torch.equal(p, before)


def test_an_entry_skipped_for_one_class_counts_for_another():
    """Row 0 is the outlier of both columns; class 1 must still read its own entry of class 0's anchor, not a zero."""
    p = torch.tensor([[0.5, 0.5, 0.0], [0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8], [0.1, 0.1, 0.8]])
    matrix = AnchorPoints(75.1).solve((p.double(), torch.tensor([0, 1, 2, 0, 1])), 3).matrix
    torch.testing.assert_close(matrix[:2], p[1:3].double())


def test_ties_at_the_threshold_are_all_skipped():
    p = torch.tensor([0.95, 0.9, 0.9, 0.6, 0.2]).double()
    p = torch.stack([p, 1 - p], 1)
    assert int(anchors(p, 60)[0]) == 3


def test_hard_predictions_have_no_outliers():
    """Every third row is surely of class i: the row at the percentile is one of them, and so is the anchor."""
    p = torch.eye(3, dtype=torch.float64)[torch.arange(300) % 3]
    assert torch.equal(p[anchors(p, 97)], torch.eye(3, dtype=torch.float64))


def test_without_a_percentile_any_of_the_tied_largest_is_the_anchor():
    p = torch.tensor([[0.2, 0.8], [0.7, 0.3], [0.7, 0.3]]).double()
    assert int(anchors(p, None)[0]) in (1, 2)


def test_a_class_rarer_than_the_percentile_cuts_off_keeps_its_anchor():
    """Hard predictions, one row in fifty of class 1: nothing lies strictly below the 97th percentile of its column."""
    p = torch.zeros(50, 2, dtype=torch.float64)
    p[:, 0] = 1
    p[17] = torch.tensor([0.1, 0.9])
    assert int(anchors(p, 97)[1]) == 17


@pytest.mark.parametrize("percentile", [None, 97])
def test_columns_of_equal_entries_give_a_row_of_the_table(percentile):
    p = torch.full((6, 3), 1 / 3, dtype=torch.float64)
    solution = AnchorPoints(percentile).solve((p, torch.arange(6) % 3), 3)
    torch.testing.assert_close(solution.matrix, p[:3])


@pytest.mark.parametrize("percentile", [0, -1, 100.1, float("nan")])
def test_a_percentile_outside_its_range_is_refused(percentile):
    with pytest.raises(InputError, match=r"a percentile lies in \(0, 100\]"):
        AnchorPoints(percentile)
