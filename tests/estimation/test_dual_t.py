"""Dual-T against loops over the rows."""

import pytest
import torch
from synthetic import random_probabilities

from postmax.estimation.anchor import anchors
from postmax.estimation.dual_t import DualT


def naive(p, labels, percentile):
    k = len(p[0])
    counts = [[0] * k for _ in range(k)]
    for row, label in zip(p, labels, strict=True):
        counts[row.index(max(row))][label] += 1
    to_label = [
        [c / sum(row) for c in row] if sum(row) else [float(i == j) for j in range(k)] for i, row in enumerate(counts)
    ]
    to_predicted = [p[a] for a in anchors(torch.tensor(p, dtype=torch.float64), percentile).tolist()]
    return [[sum(to_predicted[i][m] * to_label[m][j] for m in range(k)) for j in range(k)] for i in range(k)]


@pytest.mark.parametrize("percentile", [None, 97])
@pytest.mark.parametrize(("n", "k"), [(40, 2), (300, 6)])
def test_the_matrix_is_the_product_of_both_halves(n, k, percentile):
    p = random_probabilities(n, k, seed=3)
    labels = torch.randint(k, (n,), generator=torch.Generator().manual_seed(1))
    matrix = DualT(percentile).solve((p, labels), k).matrix
    expected = torch.tensor(naive(p.tolist(), labels.tolist(), percentile), dtype=torch.float64)
    torch.testing.assert_close(matrix, expected)


def test_a_class_that_is_never_predicted_keeps_its_label_in_the_second_half():
    """The published code has a row of zeros there, and a product whose rows do not sum to one."""
    p = torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.45, 0.15, 0.4], [0.2, 0.7, 0.1]]).double()
    labels = torch.tensor([0, 1, 2, 1])
    matrix = DualT(None).solve((p, labels), 3).matrix
    to_label = torch.tensor([[0.5, 0, 0.5], [0, 1, 0], [0, 0, 1]]).double()
    torch.testing.assert_close(matrix, p[[0, 3, 2]] @ to_label)
    torch.testing.assert_close(matrix.sum(1), torch.ones(3).double())


def test_anchors_on_the_diagonal_leave_the_counts():
    p = torch.eye(3, dtype=torch.float64).repeat(4, 1)
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2, 1, 1, 0])
    expected = torch.tensor([[3, 1, 0], [0, 4, 0], [1, 0, 3]]).double() / 4
    torch.testing.assert_close(DualT(None).solve((p, labels), 3).matrix, expected)
