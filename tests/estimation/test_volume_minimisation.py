"""VolMinNet: objective, parameters and a problem it must solve."""

import math

import numpy as np
import pytest
import torch
from synthetic import MATRICES, problem, random_probabilities

from postmax import estimate_transition
from postmax.estimation import network
from postmax.estimation.diagonal_form import initial_parameters, matrix_of, parameters_of
from postmax.estimation.evidence import gather_evidence
from postmax.estimation.volmin import VolumeMinimisation


def random_off(k, seed=0):
    return torch.randn(k, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("weight", [0.0, 1e-4, 0.5])
def test_the_objective_is_the_published_one(k, weight):
    p, off = random_probabilities(50, k), random_off(k)
    labels = torch.arange(50) % k
    weights = np.eye(k) + np.where(np.eye(k), 0, 1 / (1 + np.exp(-off.numpy())))
    t = weights / weights.sum(1, keepdims=True)
    mixed = p.numpy() @ t
    expected = -np.mean([math.log(mixed[n, y]) for n, y in enumerate(labels.tolist())])
    expected += weight * math.log(abs(np.linalg.det(t)))
    found = VolumeMinimisation(weight)._objective(p, labels, off)
    # The volume is kept from zero by 1e-6 on the diagonal.
    assert found.item() == pytest.approx(expected, abs=1e-9 + 1e-4 * weight)


@pytest.mark.parametrize("k", [2, 5])
def test_parameters_and_matrix_are_inverse_to_each_other(k):
    matrix = matrix_of(random_off(k))
    torch.testing.assert_close(matrix.sum(1), torch.ones(k, dtype=torch.float64))
    assert (matrix.argmax(1) == torch.arange(k)).all()
    torch.testing.assert_close(matrix_of(parameters_of(matrix)), matrix)


def test_zeros_and_ties_of_a_matrix_have_finite_parameters():
    matrix = torch.tensor([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.1, 0.2, 0.7]]).double()
    off = parameters_of(matrix)
    assert off.isfinite().all()
    torch.testing.assert_close(matrix_of(off), matrix, atol=1e-8, rtol=0)


@pytest.mark.parametrize(("k", "published"), [(10, -2.0), (100, -4.5)])
def test_the_start_is_the_published_one(k, published):
    assert initial_parameters(k) == pytest.approx(torch.full((k, k), published), abs=0.02)


@pytest.mark.parametrize("k", [2, 3, 10, 1000])
def test_at_the_start_about_half_of_the_labels_or_more_are_kept(k):
    assert 0.45 < float(matrix_of(initial_parameters(k).double()).diagonal().mean()) < 0.7


def test_the_matrix_for_a_given_posterior_is_a_minimum():
    data = problem(MATRICES[3], 500, separation=3)
    method = VolumeMinimisation()
    solution = method.solve((data.clean, data.labels), 3)
    off = parameters_of(solution.matrix)
    best = float(method._objective(data.clean, data.labels, off))
    for i in range(3):
        for j in range(3):
            for step in (-0.05, 0.05):
                if i != j:
                    moved = off.clone()
                    moved[i, j] += step
                    assert float(method._objective(data.clean, data.labels, moved)) >= best - 1e-8


def test_it_learns_separable_classes(monkeypatch):
    monkeypatch.setattr(network, "_MIN_STEPS", 250)
    data = problem(MATRICES[3], 1500, separation=8)
    estimate = estimate_transition(labels=data.labels, features=data.features, method="volmin", replicates=3)
    torch.testing.assert_close(estimate.matrix, data.matrix, atol=0.06, rtol=0)


def test_the_rows_are_the_clean_posterior_and_the_labels(monkeypatch):
    monkeypatch.setattr(network, "_MIN_STEPS", 150)
    data = problem(MATRICES[2], 600, separation=6)
    posterior, labels = VolumeMinimisation().rows(gather_evidence(None, data.labels, data.features, None, 0))
    assert torch.equal(labels, data.labels)
    torch.testing.assert_close(posterior.sum(1), torch.ones(600, dtype=torch.float64))
    assert (posterior.argmax(1) == data.true).double().mean() > 0.97


@pytest.mark.parametrize("k", [2, 4])
def test_a_posterior_that_says_nothing_gives_a_matrix_all_the_same(k):
    """The volume can then shrink to zero at no cost."""
    posterior = torch.full((40, k), 1 / k, dtype=torch.float64)
    method = VolumeMinimisation()
    solution = method.solve((posterior, torch.arange(40) % k), k)
    assert solution.matrix.isfinite().all()
    again = method.solve((posterior, torch.zeros(40, dtype=torch.int64)), k, solution)
    assert again.matrix.isfinite().all()
    torch.testing.assert_close(again.matrix.sum(1), torch.ones(k, dtype=torch.float64))
