"""Cycle consistency: the objective on numbers by hand, what each of its terms trains, and problems to solve."""

import math

import numpy as np
import pytest
import torch
from synthetic import MATRICES, problem, random_probabilities

from postmax import estimate_transition
from postmax.errors import InputError
from postmax.estimation import CycleConsistency, get, network
from postmax.estimation.diagonal_form import initial_parameters, parameters_of
from postmax.estimation.evidence import gather_evidence

FORTH = torch.tensor([[0.75, 0.25], [0.4, 0.6]], dtype=torch.float64)
BACK = torch.tensor([[0.8, 0.2], [0.1, 0.9]], dtype=torch.float64)


def test_the_objective_by_hand():
    """Two rows: the first is predicted as class 0 with the label 1, the second as class 1 with the label 1."""
    p = torch.tensor([[0.9, 0.1], [0.3, 0.7]], dtype=torch.float64)
    there_and_back = [
        [0.75 * 0.8 + 0.25 * 0.1, 0.75 * 0.2 + 0.25 * 0.9],
        [0.4 * 0.8 + 0.6 * 0.1, 0.4 * 0.2 + 0.6 * 0.9],
    ]
    fit = -math.log(0.9 * 0.25 + 0.1 * 0.6) - math.log(0.3 * 0.25 + 0.7 * 0.6)
    back = -math.log(0.1) - math.log(0.9)
    cycle = -math.log(0.9 * there_and_back[0][0] + 0.1 * there_and_back[1][0])
    cycle -= math.log(0.3 * there_and_back[0][1] + 0.7 * there_and_back[1][1])
    found = CycleConsistency()._objective(p.log(), torch.tensor([1, 1]), parameters_of(FORTH), parameters_of(BACK))
    assert found.item() == pytest.approx((fit + back + 0.3 * cycle) / 2, abs=1e-9)


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_the_objective_against_a_loop(k, weight):
    p, labels = random_probabilities(20, k), torch.arange(20) % k
    generator = torch.Generator().manual_seed(1)
    offs = [torch.randn(k, k, generator=generator, dtype=torch.float64) for _ in range(2)]
    weights = [np.eye(k) + np.where(np.eye(k), 0, 1 / (1 + np.exp(-off.numpy()))) for off in offs]
    forth, back = (each / each.sum(1, keepdims=True) for each in weights)
    total = 0.0
    for row, y in zip(p.numpy(), labels.tolist(), strict=True):
        guess = int(row.argmax())
        total -= math.log(row @ forth[:, y]) + math.log(back[y, guess])
        total -= weight * math.log((row @ forth @ back)[guess])
    found = CycleConsistency(weight)._objective(p.log(), labels, *offs)
    assert found.item() == pytest.approx(total / 20, abs=1e-12)


def test_what_each_term_trains():
    """T learns from the labels alone and B from the predicted classes alone, whatever the weight of the cycle is."""
    p, labels = random_probabilities(20, 3), torch.arange(20) % 3
    log_p = p.log().requires_grad_()
    forth, back = (initial_parameters(3).double().requires_grad_() for _ in range(2))
    some, none = (
        torch.autograd.grad(CycleConsistency(weight)._objective(log_p, labels, forth, back), (log_p, forth, back))
        for weight in (0.7, 0.0)
    )
    assert not torch.allclose(some[0], none[0])
    torch.testing.assert_close(some[1:], none[1:])
    assert some[1].any()
    assert some[2].any()


def test_sure_predictions_have_a_finite_objective():
    logits = torch.tensor([[1e4, -1e4], [-1e4, 1e4]], requires_grad=True)
    forth, back = (initial_parameters(2).requires_grad_() for _ in range(2))
    value = CycleConsistency()._objective(logits.log_softmax(1), torch.tensor([1, 0]), forth, back)
    for part in (value, *torch.autograd.grad(value, (logits, forth, back))):
        assert part.isfinite().all()


def test_the_cycle_makes_the_network_surer(monkeypatch):
    monkeypatch.setattr(network, "_MIN_STEPS", 100)
    data = problem(MATRICES[3], 400, separation=2)
    evidence = gather_evidence(None, data.labels, data.features, None, 0)
    plain, paid = (CycleConsistency(weight).rows(evidence)[0].amax(1).mean() for weight in (0.0, 2.0))
    assert paid > plain + 0.05


@pytest.mark.parametrize("k", [2, 3])
def test_it_comes_as_near_as_volume_minimisation(monkeypatch, k):
    monkeypatch.setattr(network, "_MIN_STEPS", 250)
    data = problem(MATRICES[k], 1500, separation=8)
    given = {"labels": data.labels, "features": data.features, "replicates": 2}
    found, other = (estimate_transition(**given, method=method) for method in ("cycle-consistency", "volmin"))
    torch.testing.assert_close(found.matrix, data.matrix, atol=0.08, rtol=0)
    assert (found.matrix - other.matrix).abs().max() < 0.08


@pytest.mark.parametrize("weight", [-0.1, math.nan, math.inf])
def test_weights_that_make_no_sense(weight):
    with pytest.raises(InputError, match="the weight of the cycle is a number of at least 0"):
        CycleConsistency(weight)


def test_it_needs_features():
    with pytest.raises(InputError, match="cycle consistency needs features"):
        estimate_transition(torch.full((9, 3), 1 / 3), torch.arange(9) % 3, method="cycle")
    assert get("cycle-consistency") == get("cycle") == CycleConsistency()
