"""Total-variation regularisation: the objective on numbers by hand, the fit of the matrix, and problems to solve."""

import math

import numpy as np
import pytest
import torch
from synthetic import MATRICES, problem, random_probabilities

from postmax import estimate_transition
from postmax.errors import InputError
from postmax.estimation import TotalVariation, get, network
from postmax.estimation.diagonal_form import initial_parameters, parameters_of
from postmax.estimation.evidence import gather_evidence
from postmax.estimation.total_variation import variation
from postmax.estimation.trained_posterior import solution_for


def test_the_objective_by_hand():
    """Three rows of two classes. The pairs are (1, 3), (2, 1) and (3, 2), and T keeps 3/4 and 2/3 of the labels."""
    p = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]], dtype=torch.float64)
    off = parameters_of(torch.tensor([[3 / 4, 1 / 4], [1 / 3, 2 / 3]], dtype=torch.float64))
    likelihoods = [0.9 * 3 / 4 + 0.1 / 3, 0.5 / 4 + 0.5 * 2 / 3, 0.2 / 4 + 0.8 * 2 / 3]
    expected = -sum(math.log(value) for value in likelihoods) / 3 - 0.1 * (0.7 + 0.4 + 0.3) / 3
    found = TotalVariation()._objective(p.log(), torch.tensor([0, 1, 1]), off)
    assert found.item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("weight", [0.0, 0.1, 2.0])
def test_the_objective_against_a_loop(k, weight):
    p, labels = random_probabilities(20, k), torch.arange(20) % k
    off = torch.randn(k, k, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights = np.eye(k) + np.where(np.eye(k), 0, 1 / (1 + np.exp(-off.numpy())))
    t = weights / weights.sum(1, keepdims=True)
    fit = -np.mean([math.log(p[n].numpy() @ t[:, y]) for n, y in enumerate(labels.tolist())])
    apart = np.mean([np.abs(p[n].numpy() - p[n - 1].numpy()).sum() / 2 for n in range(20)])
    found = TotalVariation(weight)._objective(p.log(), labels, off)
    assert found.item() == pytest.approx(fit - weight * apart, abs=1e-12)


def test_sure_predictions_have_a_finite_objective():
    logits = torch.tensor([[1e4, -1e4], [-1e4, 1e4]], requires_grad=True)
    off = initial_parameters(2).requires_grad_()
    value = TotalVariation()._objective(logits.log_softmax(1), torch.tensor([1, 0]), off)
    assert value.item() == pytest.approx(math.log(3) - 0.1)
    for gradient in torch.autograd.grad(value, (logits, off)):
        assert gradient.isfinite().all()


def test_the_variation_is_largest_for_the_corners():
    corners = torch.eye(4).repeat(3, 1)
    assert variation(corners) == 1
    assert variation(corners[:1]) == 0
    assert variation(torch.full((5, 4), 0.25)) == 0


def test_a_larger_weight_tells_rows_further_apart(monkeypatch):
    monkeypatch.setattr(network, "_MIN_STEPS", 100)
    data = problem(MATRICES[3], 400, separation=2)
    evidence = gather_evidence(None, data.labels, data.features, None, 0)
    plain, paid = (variation(TotalVariation(weight).rows(evidence)[0]) for weight in (0.0, 3.0))
    assert paid > plain + 0.02


@pytest.mark.parametrize("k", [2, 3])
def test_it_comes_as_near_as_volume_minimisation(monkeypatch, k):
    monkeypatch.setattr(network, "_MIN_STEPS", 250)
    data = problem(MATRICES[k], 1500, separation=8)
    given = {"labels": data.labels, "features": data.features, "replicates": 2}
    found, other = (estimate_transition(**given, method=method) for method in ("total-variation", "volmin"))
    torch.testing.assert_close(found.matrix, data.matrix, atol=0.08, rtol=0)
    assert (found.matrix - other.matrix).abs().max() < 0.08


@pytest.mark.parametrize("weight", [-0.1, math.nan, math.inf])
def test_weights_that_make_no_sense(weight):
    with pytest.raises(InputError, match="the weight of the total variation is a number of at least 0"):
        TotalVariation(weight)


def test_it_needs_features():
    with pytest.raises(InputError, match="total variation needs features"):
        estimate_transition(torch.full((9, 3), 1 / 3), torch.arange(9) % 3, method="tv")
    assert get("tvr") == get("tv") == TotalVariation()


# The matrix for a given posterior, which cycle consistency uses too.


def log_likelihood(matrix, posterior, labels):
    return float((posterior * matrix.T[labels]).sum(1).log().mean())


@pytest.mark.parametrize("k", [2, 3])
def test_no_other_matrix_is_more_likely(k):
    data = problem(MATRICES[k], 500, separation=3)
    solution = solution_for((data.clean, data.labels), k)
    best = log_likelihood(solution.matrix, data.clean, data.labels)
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        step = torch.randn(k, k, generator=generator, dtype=torch.float64)
        moved = (solution.matrix * (0.1 * step).exp()).clamp_min(1e-12)
        assert log_likelihood(moved / moved.sum(1, keepdim=True), data.clean, data.labels) <= best + 1e-7


def test_the_exact_posterior_gives_the_matrix():
    data = problem(MATRICES[10], 20_000, separation=4)
    found = solution_for((data.clean, data.labels), 10)
    torch.testing.assert_close(found.matrix, data.matrix, atol=0.04, rtol=0)
    torch.testing.assert_close(found.prior, torch.full((10,), 0.1).double(), atol=0.02, rtol=0)


def test_a_start_does_not_change_the_answer():
    data = problem(MATRICES[3], 500, separation=3)
    first = solution_for((data.clean, data.labels), 3)
    again = solution_for((data.clean, data.labels), 3, first)
    torch.testing.assert_close(again.matrix, first.matrix, atol=2e-3, rtol=0)


def test_many_classes_are_fitted_in_parts(monkeypatch):
    data = problem(MATRICES[3], 200, separation=3)
    whole = solution_for((data.clean, data.labels), 3)
    monkeypatch.setattr("postmax.estimation.trained_posterior._CHUNK_ELEMENTS", 50)
    torch.testing.assert_close(solution_for((data.clean, data.labels), 3).matrix, whole.matrix, atol=1e-6, rtol=0)


@pytest.mark.parametrize("k", [2, 4])
def test_a_posterior_that_says_nothing_gives_a_matrix_all_the_same(k):
    posterior = torch.full((40, k), 1 / k, dtype=torch.float64)
    solution = solution_for((posterior, torch.arange(40) % k), k)
    torch.testing.assert_close(solution.matrix.sum(1), torch.ones(k, dtype=torch.float64))
    again = solution_for((posterior, torch.zeros(40, dtype=torch.int64)), k, solution)
    torch.testing.assert_close(again.matrix.sum(1), torch.ones(k, dtype=torch.float64))
