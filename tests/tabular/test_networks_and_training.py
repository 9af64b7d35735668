"""Lanes are independent networks, and training keeps what foresees held-out labels best."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from postmax.errors import UnknownNameError
from postmax.losses import FPMLLoss
from postmax.tabular.candidates import candidates, fold_count
from postmax.tabular.committee import Committee, mixture
from postmax.tabular.networks import BUILDERS, PiecewiseLinear, make
from postmax.tabular.training import Folds, Rows, train

LOSS = FPMLLoss("kl", "softmax", reduction="none")


def two_moons(count=240, flips=0.0):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(count, 3, generator=generator)
    labels = (features[:, 0] * features[:, 1] > 0).long()
    wrong = torch.rand(count, generator=generator) < flips
    return Rows(features, torch.where(wrong, 1 - labels, labels), torch.ones(count), 2), labels


@pytest.mark.parametrize("kind", BUILDERS)
def test_lanes_do_not_touch_each_other(kind):
    rows, _ = two_moons()
    options = {} if kind in ("linear", "additive") else {"width": 8, "dropout": 0.0}
    network = make(kind, 3, rows.features, 2, torch.Generator().manual_seed(0), **options)
    logits = network(rows.features[:5])
    assert logits.shape == (3, 5, 2)
    logits[1].sum().backward()
    for parameter in network.parameters():
        assert (parameter.grad[[0, 2]] == 0).all()
    torch.testing.assert_close(network(rows.features[:5].expand(3, -1, -1)), logits)


def test_pieces_add_up_to_the_number():
    """Between its smallest and its largest value, a number is a linear function of its pieces."""
    values = torch.randn(500, 1, generator=torch.Generator().manual_seed(0))
    encode = PiecewiseLinear.fit(values)
    pieces = encode(values) + encode.centre
    assert encode.size == 8
    torch.testing.assert_close((pieces / encode.scale).sum(1) + encode.low[0], values[:, 0], atol=1e-5, rtol=0)
    assert (pieces[:, 1:] > 0).logical_and(pieces[:, :-1] < 1).sum() == 0  # one piece is filled before the next begins


def test_folds_hold_out_each_row_once():
    labels = torch.arange(23) % 3
    folds = Folds.make(labels, 4, 2, torch.Generator().manual_seed(0))
    assert folds.train.shape[0] == 8
    for repeat in (slice(0, 4), slice(4, 8)):
        assert folds.held[repeat].unique().tolist() == list(range(23))
    for inside, outside in zip(folds.train, folds.held, strict=True):
        assert not set(inside.tolist()) & set(outside.tolist())


def test_early_stopping_keeps_the_best_and_is_not_fooled_by_noise():
    rows, truth = two_moons(flips=0.3)
    folds = Folds.make(rows.labels, 4, 1, torch.Generator().manual_seed(0))
    settings = [one._replace(epochs=60, dropout=0.0) for one in candidates("residual")]
    found = train(settings, rows, folds, LOSS, 0)
    scores = [score for _, (score,) in found.history]
    assert float(found.scores[0]) == min(scores) < scores[-1]
    late = train(settings, rows, folds, LOSS, 0, stop_early=False)
    accuracy = [float((one.label_posterior[0].argmax(1) == truth).double().mean()) for one in (found, late)]
    assert accuracy[0] > accuracy[1]


def test_out_of_sample_posteriors_are_those_of_the_lanes_that_did_not_see_the_row():
    rows, _ = two_moons(60)
    folds = Folds.make(rows.labels, 3, 1, torch.Generator().manual_seed(0))
    found = train(candidates("linear", max_iter=3), rows, folds, LOSS, 0)
    with torch.no_grad():
        logits = found.network(rows.features)
    for lane, held in enumerate(folds.held):
        expected = logits[lane, held].softmax(1).double()
        torch.testing.assert_close(found.label_posterior[0, held], expected, atol=1e-6, rtol=1e-5)


def test_a_committee_is_the_weighted_mean_of_its_lanes():
    rows, _ = two_moons(30)
    network = make("linear", 2, rows.features, 2, torch.Generator().manual_seed(0))
    with torch.no_grad():
        first, second = network(rows.features).double().softmax(2)
    committee = Committee([network], [torch.tensor([0.25, 0.75])], LOSS)
    torch.testing.assert_close(committee.posterior(rows.features), 0.25 * first + 0.75 * second, atol=1e-6, rtol=1e-5)
    together, alone = committee.posterior(rows.features), committee.posterior(rows.features[3:4])
    torch.testing.assert_close(together[3:4], alone, atol=1e-14, rtol=0)


def test_the_mixture_is_that_of_a_general_optimiser():
    chances = torch.rand(3, 200, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = mixture(chances, torch.ones(200, dtype=torch.float64))

    def loss(logits):
        shares = np.exp(logits) / np.exp(logits).sum()
        return -np.log(shares @ chances.numpy()).sum() - np.log(shares).sum()  # with the prior of one label each

    best = minimize(loss, np.zeros(3), tol=1e-12).x
    np.testing.assert_allclose(found, np.exp(best) / np.exp(best).sum(), atol=1e-3)


def test_candidates():
    assert {one.kind for one in candidates("auto")} == set(BUILDERS)
    assert len(candidates("linear", weight_decay=0.5)) == 1
    with pytest.raises(UnknownNameError, match="Did you mean 'residual'"):
        candidates("residuals")
    assert fold_count(None, 3) == 2
    assert fold_count(10, 1000) == 10
