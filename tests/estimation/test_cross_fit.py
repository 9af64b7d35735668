"""Cross-fitting: every row is judged by a network that has not seen it."""

import pytest
import torch
from scipy import stats
from synthetic import MATRICES, problem

from postmax import FPMLLoss, Transition
from postmax.errors import InputError
from postmax.estimation import crossfit, network
from postmax.estimation.crossfit import FOLDS, cross_fit, folds_of
from postmax.estimation.network import Copies, train


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    monkeypatch.setattr(network, "_MIN_STEPS", 150)


@pytest.mark.parametrize("n", [10, 11, 57, 5003])
def test_no_network_judges_a_row_it_was_trained_on(monkeypatch, n):
    """Each copy is made to answer with its own number, whatever the row."""
    seen = []

    def pretend(copies, features, labels, rows, loss, what):
        seen.extend(set(part.tolist()) for part in rows)
        with torch.no_grad():
            copies.outer.zero_()
            copies.outer_bias.copy_(torch.eye(FOLDS)[:, None] * 5)
        copies.eval()

    monkeypatch.setattr(crossfit, "train", pretend)
    labels = torch.randint(FOLDS, (n,), generator=torch.Generator().manual_seed(0))
    judge = cross_fit(torch.randn(n, 2), labels, FOLDS).argmax(1).tolist()
    assert set(judge) == set(range(FOLDS))
    for row, copy in enumerate(judge):
        assert row not in seen[copy]
    # Of the others a copy sees all but the last few, so that all copies see equally many.
    assert all(len(rows) >= n - -(-n // FOLDS) for rows in seen)


def test_random_labels_cannot_be_predicted():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(400, 30, generator=generator)
    labels = torch.randint(2, (400,), generator=generator)
    right = int((cross_fit(x, labels, 2).argmax(1) == labels).sum())
    assert stats.binomtest(right, 400, 0.5).pvalue > 0.001
    alone = Copies(1, x, 2, generator)
    train(alone, x, labels, torch.arange(400)[None], FPMLLoss("kl", "softmax"))
    memorised = (alone(x[None])[0].argmax(1) == labels).double().mean()
    assert memorised > 0.65


@pytest.mark.parametrize("sizes", [[50, 50], [7, 3, 90], [1, 1, 1, 9]])
def test_folds_are_balanced_and_labels_spread_over_them(sizes):
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))]
    fold = folds_of(labels, torch.Generator().manual_seed(1))
    all_counts = fold.bincount(minlength=FOLDS)
    assert all_counts.max() - all_counts.min() <= 1
    for label in range(len(sizes)):
        counts = fold[labels == label].bincount(minlength=FOLDS)
        assert counts.max() - counts.min() <= 1


def test_folds_depend_on_the_generator_and_not_on_the_order_of_rows_alone():
    labels = torch.zeros(200, dtype=torch.int64)
    first, again, other = (folds_of(labels, torch.Generator().manual_seed(s)) for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert stats.spearmanr(first, torch.arange(200)).pvalue > 0.001


def test_the_seed_decides_and_the_global_generator_does_not():
    data = problem(MATRICES[2], 100)
    x = data.features.float()
    fits = []
    for seed, outside in ((1, 0), (1, 7), (2, 0)):
        torch.manual_seed(outside)
        fits.append(cross_fit(x, data.labels, 2, seed=seed))
    assert torch.equal(fits[0], fits[1])
    assert not torch.equal(fits[0], fits[2])


def test_the_answer_is_a_log_posterior_that_predicts_the_label():
    data = problem(MATRICES[3], 900, separation=6)
    found = cross_fit(data.features.float(), data.labels, 3)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found.exp().sum(1), torch.ones(900, dtype=torch.float64))
    assert (found.argmax(1) == data.true).double().mean() > 0.97


def test_a_forward_correction_gives_the_posterior_of_the_true_label():
    data = problem(MATRICES[2], 900, separation=6)
    x = data.features.float()
    loss = FPMLLoss("kl", "softmax", transition=Transition(data.matrix), correction="forward")
    plain, forward = cross_fit(x, data.labels, 2), cross_fit(x, data.labels, 2, loss=loss)
    assert forward.max(1).values.exp().mean() > plain.max(1).values.exp().mean() + 0.05


def test_scale_and_offset_of_a_column_make_no_difference():
    data = problem(MATRICES[2], 200)
    x = data.features.float()
    usual = cross_fit(x, data.labels, 2)
    scaled = cross_fit(x * torch.tensor([1e20, 1e-12]), data.labels, 2)
    torch.testing.assert_close(scaled, usual, atol=0.02, rtol=0.02)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e8, -1e30])
def test_a_constant_column_says_nothing(constant):
    data = problem(MATRICES[2], 300, separation=6)
    x = torch.cat([data.features.float(), torch.full((300, 1), constant)], 1)
    assert Copies(1, x, 2, torch.Generator()).scale[2] == 0
    found = cross_fit(x, data.labels, 2)
    assert (found.argmax(1) == data.true).double().mean() > 0.97


def test_the_last_digit_of_a_large_constant_says_nothing():
    x = torch.stack([1e8 + 8 * (torch.arange(100) % 2), torch.arange(100)], 1).float()
    assert len(x[:, 0].unique()) == 2
    assert Copies(1, x, 2, torch.Generator()).scale[0] == 0


def test_one_feature_is_enough():
    data = problem(MATRICES[2], 300, separation=6)
    x = (data.features[:, :1] - data.features[:, 1:]).float()
    assert (cross_fit(x, data.labels, 2).argmax(1) == data.true).double().mean() > 0.97


def test_features_that_are_all_constant_give_the_same_answer_for_every_row_of_a_fold():
    labels = (torch.arange(300) % 4 == 0).long()
    found = cross_fit(torch.ones(300, 2), labels, 2)
    assert len(found.unique(dim=0)) <= FOLDS
    assert (found[:, 0] > found[:, 1]).all()


def test_too_few_rows_are_refused():
    with pytest.raises(InputError, match="9 rows are too few for 5 folds; give probabilities instead"):
        cross_fit(torch.randn(9, 2), torch.arange(9) % 2, 2)
