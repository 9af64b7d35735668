"""The confident joint straight from its definition."""

import pytest
import torch
from synthetic import MATRICES, problem, random_probabilities

from postmax.estimation.confident import ConfidentJoint, confident_pairs


def naive(p, labels, k):
    """Pairs (confident class, label), then the calibrated joint, in loops."""
    threshold = []
    for j in range(k):
        own = [row[j] for row, label in zip(p, labels, strict=True) if label == j]
        threshold.append(sum(own) / len(own) if own else float("inf"))
    pairs = []
    for row, label in zip(p, labels, strict=True):
        reached = [j for j in range(k) if row[j] >= threshold[j]]
        if reached:
            pairs.append((max(reached, key=lambda j: row[j]), label))
    joint = [[pairs.count((i, j)) for j in range(k)] for i in range(k)]
    for j in range(k):
        if not sum(joint[i][j] for i in range(k)):
            joint[j][j] = 1
        total = sum(joint[i][j] for i in range(k))
        for i in range(k):
            joint[i][j] *= labels.count(j) / total
    return pairs, joint


@pytest.mark.parametrize(("n", "k"), [(30, 2), (200, 3), (400, 7)])
@pytest.mark.parametrize("sharpness", [0.5, 3.0])
def test_pairs_matrix_and_prior_follow_the_definition(n, k, sharpness):
    p = random_probabilities(n, k, seed=n, sharpness=sharpness)
    labels = torch.multinomial(p, 1, generator=torch.Generator().manual_seed(0)).flatten()
    pairs, joint = naive(p.tolist(), labels.tolist(), k)
    assert list(zip(*(part.tolist() for part in confident_pairs(p, labels)), strict=True)) == pairs
    solution = ConfidentJoint().solve((p, labels), k)
    for i, row in enumerate(joint):
        expected = [entry / sum(row) for entry in row] if sum(row) else [float(i == j) for j in range(k)]
        assert solution.matrix[i].tolist() == pytest.approx(expected)
    assert solution.prior.tolist() == pytest.approx([sum(row) / n for row in joint])


def test_the_joint_has_as_many_rows_of_each_label_as_there_are():
    p = random_probabilities(500, 4, sharpness=1)
    labels = torch.multinomial(p, 1, generator=torch.Generator().manual_seed(0)).flatten()
    solution = ConfidentJoint().solve((p, labels), 4)
    torch.testing.assert_close(solution.prior @ solution.matrix, torch.bincount(labels).double() / 500)


def test_a_class_below_its_own_threshold_is_never_chosen():
    """The last row is most probably of class 0, but below the 0.9 that class 0 has on average; class 2 reaches its 0.2.

    Two classes must reach their thresholds for the known mistake, taking the largest of all, to show.
    """
    p = torch.tensor([[0.9, 0.1, 0.0], [0.9, 0.0, 0.1], [0.4, 0.4, 0.2], [0.3, 0.5, 0.2], [0.5, 0.26, 0.24]]).double()
    labels = torch.tensor([0, 0, 2, 2, 1])
    chosen, kept = confident_pairs(p, labels)
    # Thresholds 0.9, 0.26, 0.2: rows 2 and 4 reach classes 1 and 2, and are most probably of class 1 among these.
    assert kept.tolist() == [0, 0, 2, 2, 1]
    assert chosen.tolist() == [0, 0, 1, 1, 1]


def test_a_row_that_reaches_no_threshold_is_not_counted():
    p = torch.tensor([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.1, 0.9]]).double()
    chosen, kept = confident_pairs(p, torch.tensor([0, 0, 1, 1]))
    assert (chosen.tolist(), kept.tolist()) == ([0, 1], [0, 1])


@pytest.mark.parametrize("count", range(2, 60))
def test_rows_that_are_all_alike_reach_their_mean(count):
    """0.1 + 0.1 + 0.1 exceeds 0.3 in floating point, but a level posterior is as confident as it gets."""
    p = torch.tensor([[0.1, 0.9]] * count + [[0.3, 0.7]] * count, dtype=torch.float64)
    labels = torch.tensor([1] * count + [0] * count)
    chosen, _ = confident_pairs(p, labels)
    assert len(chosen) == 2 * count


def test_a_label_without_a_confident_row_is_taken_at_its_word():
    p = torch.tensor([[0.8, 0.1, 0.1]] * 3 + [[0.1, 0.8, 0.1]] * 3 + [[0.5, 0.4, 0.1], [0.4, 0.29, 0.31]]).double()
    # The only row of label 2 that reaches a threshold is none: 0.205 is the mean of 0.1 and 0.31.
    labels = torch.tensor([0, 0, 0, 1, 1, 1, 2, 1])
    solution = ConfidentJoint().solve((p, labels), 3)
    assert solution.matrix.isfinite().all()
    assert solution.prior.tolist() == pytest.approx([sum(row) / 8 for row in naive(p.tolist(), labels.tolist(), 3)[1]])


def test_clear_classes_give_the_matrix():
    data = problem(MATRICES[3], 6000, separation=8)
    solution = ConfidentJoint().solve((data.probabilities, data.labels), 3)
    error = (data.matrix * (1 - data.matrix) / 2000).sqrt()
    assert ((solution.matrix - data.matrix).abs() <= 4 * error + 1e-3).all()
