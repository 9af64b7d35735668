"""What all methods share: counts, rows that sum to one, and the prior behind the labels."""

import pytest
import torch
from synthetic import MATRICES

from postmax import Transition
from postmax.estimation.counts import count_pairs, keep_unseen, normalise_rows, prior_behind
from postmax.estimation.estimator import Solution


def test_pairs_are_counted():
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randint(5, (2, 300), generator=generator)
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    expected = [[pairs.count((i, j)) for j in range(6)] for i in range(6)]
    assert count_pairs(first, second, 6).tolist() == expected


def test_no_pairs_count_to_zero():
    nothing = torch.zeros(0, dtype=torch.int64)
    assert count_pairs(nothing, nothing, 3).tolist() == [[0.0] * 3] * 3


def test_rows_are_divided_by_their_sums_and_empty_rows_keep_their_label():
    weights = torch.tensor([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0], [1e-200, 0.0, 1e-200]]).double()
    weights[2] = torch.tensor([1e-200, 0.0, 1e-200], dtype=torch.float64)
    assert normalise_rows(weights).tolist() == [[0.25, 0.75, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]


def test_a_class_without_a_label_keeps_its_label():
    matrix = Transition.symmetric(4, 0.3).matrix
    found = keep_unseen(matrix, torch.tensor([[0, 3], [3, 1]]))
    assert torch.equal(found[[0, 1, 3]], matrix[[0, 1, 3]])
    assert found[2].tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("k", "prior"), [(2, [0.3, 0.7]), (3, [0.2, 0.5, 0.3]), (3, [0.6, 0.0, 0.4]), (10, [0.1] * 10)]
)
def test_the_prior_is_the_true_one_on_exact_marginals(k, prior):
    """100 000 labels in exactly the proportions that this prior and this matrix give."""
    matrix = MATRICES[k].matrix
    counts = (100_000 * torch.tensor(prior).double() @ matrix).round().long()
    assert int(counts.sum()) == 100_000
    labels = torch.arange(k).repeat_interleave(counts)
    torch.testing.assert_close(prior_behind(matrix, labels), torch.tensor(prior).double(), atol=1e-3, rtol=0)


def test_the_prior_stays_a_distribution_where_an_inverse_would_not():
    """Label 0 is rarer than any true frequencies explain: e0 = 0.1 of class 1 alone would give more of it."""
    matrix = Transition([[0.9, 0.1], [0.1, 0.9]]).matrix
    labels = torch.tensor([0] * 2 + [1] * 98)
    naive = (torch.tensor([0.02, 0.98]).double() @ torch.linalg.inv(matrix)).tolist()
    assert naive[0] < 0
    assert prior_behind(matrix, labels).tolist() == pytest.approx([0, 1], abs=1e-6)


@pytest.mark.parametrize("matrix", [[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1], [0, 1]])
def test_labels_that_the_matrix_rules_out_still_have_a_prior(matrix, labels):
    prior = prior_behind(torch.tensor(matrix).double(), torch.tensor(labels))
    assert prior.sum().item() == pytest.approx(1)
    assert (prior >= 0).all()


def test_the_noise_rate_weighs_classes_by_their_prior():
    solution = Solution(MATRICES[3].matrix, torch.tensor([0.5, 0.3, 0.2]).double())
    assert solution.noise_rate == pytest.approx(0.5 * 0.2 + 0.3 * 0.1 + 0.2 * 0.3)
