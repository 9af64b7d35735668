"""Projection onto the simplex against its definition; log-mixtures against 50 digits."""

import mpmath as mp
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

import postmax as pm
from postmax.transition import project_onto_simplex
from postmax.transition.mixture import LogMixture

MATRICES = {
    "identity": pm.Transition.identity(5),
    "dense": pm.Transition.symmetric(5, 0.3),
    "pair": pm.Transition.pair(5, 0.4),
    "mixed": pm.Transition(
        [[0.9, 0.1, 0, 0, 0], [0.2, 0.8, 0, 0, 0], [0, 0.3, 0.5, 0.1, 0.1], [0, 0.5, 0, 0.5, 0], [0, 0.2, 0, 0, 0.8]]
    ),
}
ROWS = [
    [0.0, 0.0, 0.0, 0.0, 0.0],
    [10.0, -3.0, 0.5, 2.0, -7.0],
    [1e4, -1e4, 0.0, 50.0, -50.0],
    [-1e4, -1e4, -1e4, 0.0, 1e4],
    [-200.0, -150.0, 90.0, -300.0, -9000.0],
]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.floats(-3, 3), min_size=2, max_size=8))
def test_projection_satisfies_the_optimality_conditions(values):
    """p is the projection iff it is a probability vector and v − p is largest exactly on the support."""
    v = torch.tensor(values, dtype=torch.float64)
    p = project_onto_simplex(v)
    assert p.sum().item() == pytest.approx(1)
    assert (p >= 0).all()
    multiplier = (v - p)[p > 0]
    assert multiplier.max() - multiplier.min() < 1e-9
    assert (v[p == 0] <= multiplier.max() + 1e-9).all()


def test_projection_keeps_probabilities_and_shapes():
    p = torch.softmax(torch.randn(4, 3, 5), -1)
    assert_close(project_onto_simplex(p), p)


def exact_log_mixture(row, matrix):
    z = [mp.mpf(v) for v in row]
    log_sum = mp.log(sum(mp.exp(v) for v in z))
    columns = zip(*matrix.tolist(), strict=True)
    return [mp.log(sum(mp.mpf(w) * mp.exp(v - log_sum) for w, v in zip(c, z, strict=True) if w)) for c in columns]


@pytest.mark.parametrize("name", MATRICES)
def test_log_mixture_is_exact_for_any_logits(name):
    matrix = MATRICES[name].matrix
    with mp.workdps(50):
        expected = torch.tensor([[float(v) for v in exact_log_mixture(r, matrix)] for r in ROWS], dtype=torch.float64)
    mix = LogMixture(matrix)
    assert_close(mix(torch.tensor(ROWS).double().log_softmax(-1)), expected, rtol=1e-12, atol=1e-12)
    assert_close(mix(torch.tensor(ROWS).log_softmax(-1)), expected.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MATRICES)
def test_log_mixture_gradients_are_right_and_finite(name):
    mix = LogMixture(MATRICES[name].matrix)
    z = torch.tensor(ROWS[:2], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: mix(z.log_softmax(-1)), z)
    extreme = torch.tensor(ROWS, requires_grad=True)
    mix(extreme.log_softmax(-1)).sum().backward()
    assert extreme.grad.isfinite().all()


def test_a_large_matrix_with_scattered_zeros_is_multiplied():
    """One zero a column must not cost the memory of all the others; K = 1000 as estimated matrices have it."""
    matrix = pm.Transition.symmetric(1000, 0.5).matrix.clone()
    matrix[torch.arange(1000), torch.arange(1000).roll(1)] = 0
    matrix = pm.Transition(matrix / matrix.sum(1, keepdim=True)).matrix
    log_p = torch.randn(8, 1000, dtype=torch.float64).log_softmax(-1)
    assert_close(LogMixture(matrix)(log_p), (log_p.exp() @ matrix).log())


@pytest.mark.parametrize("gap", [5.0, 95.0, 200.0, 1e4])
def test_a_class_that_the_most_probable_one_never_becomes_has_a_gradient(gap):
    """K = 30: too many entries to be summed in the logarithm; the label comes from improbable classes only."""
    torch.manual_seed(0)
    matrix = torch.rand(30, 30, dtype=torch.float64)
    matrix[0, 3] = matrix[1, 4] = 0.0
    matrix = pm.Transition(matrix / matrix.sum(1, keepdim=True)).matrix
    row = torch.randn(30)
    row[0] += gap
    with mp.workdps(50):
        expected = [float(v) for v in exact_log_mixture(row.tolist(), matrix)]
    log_p = row.log_softmax(-1).requires_grad_()
    mixed = LogMixture(matrix)(log_p)
    assert_close(mixed, torch.tensor(expected), rtol=1e-5, atol=1e-5)
    (gradient,) = torch.autograd.grad(mixed[3], log_p)
    assert gradient[0] == 0
    assert_close(gradient.sum(), torch.tensor(1.0))  # log(Pᵀp) grows by what log p grows by


def test_forward_correction_with_identity_is_no_correction():
    z = torch.tensor(ROWS, requires_grad=True)
    y = torch.arange(5)
    for name in ("kl", "gan", "sl"):
        plain = pm.FPMLLoss(name, "softmax")(z, y)
        forward = pm.FPMLLoss(name, transition=pm.Transition.identity(5), correction="forward")(z, y)
        assert_close(forward, plain)
        assert_close(torch.autograd.grad(forward, z), torch.autograd.grad(plain, z))


def test_a_label_that_only_impossible_classes_become_is_impossible():
    log_p = torch.tensor([-torch.inf, 0.0, -torch.inf], dtype=torch.float64)
    mixed = LogMixture(torch.tensor([[0.9, 0.1, 0.0], [0.0, 0.6, 0.4], [0.2, 0.0, 0.8]], dtype=torch.float64))(log_p)
    assert_close(mixed.exp(), torch.tensor([0.0, 0.6, 0.4], dtype=torch.float64))
