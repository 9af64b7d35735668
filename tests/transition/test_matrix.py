"""The transition matrix: what it accepts, what it says, and that it undoes what it does."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from finite_problem import invertible, probabilities, rates
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

import postmax as pm
from postmax.errors import InputError

few = settings(max_examples=50, deadline=None, derandomize=True)


def test_binary_follows_the_papers_notation():
    """e0 = P(noisy 0 | true 1), e1 = P(noisy 1 | true 0)."""
    assert_close(
        pm.Transition.binary(0.1, 0.3).matrix, torch.tensor([[0.7, 0.3], [0.1, 0.9]]).double(), check_dtype=True
    )


def test_symmetric_excludes_the_true_class():
    noise = pm.Transition.symmetric(10, 0.4)
    assert noise.noise_rate() == pytest.approx(0.4)
    assert noise.matrix[3, 7].item() == pytest.approx(0.4 / 9)


def test_papers_low_noise_matrix_for_cifar10():
    """The diagonal and a row of the matrix printed in the paper's appendix."""
    noise = pm.Transition.uniform_off_diagonal([0.02, 0.03, 0.01, 0.023, 0.017, 0.022, 0.021, 0.018, 0.019, 0.02])
    diagonal = [0.82, 0.83, 0.81, 0.823, 0.817, 0.822, 0.821, 0.818, 0.819, 0.82]
    assert_close(noise.matrix.diagonal(), torch.tensor(diagonal).double())
    assert_close(noise.matrix[1, [0, 2, 9]], torch.tensor([0.02, 0.01, 0.02]).double())


def test_asymmetric_cifar10_flips_five_classes():
    matrix = pm.Transition.asymmetric("CIFAR-10", 0.4).matrix
    for source, target in {9: 1, 2: 0, 3: 5, 5: 3, 4: 7}.items():
        assert matrix[source, target] == 0.4
    assert pm.Transition.asymmetric("cifar10", 0.4).noise_rate() == pytest.approx(0.2)


def test_asymmetric_cifar100_flips_within_blocks_of_five():
    matrix = pm.Transition.asymmetric("cifar100", 0.3).matrix
    assert matrix[0, 1] == matrix[3, 4] == matrix[4, 0] == matrix[99, 95] == 0.3
    assert (matrix > 0).sum() == 200


def test_pair_flips_to_the_next_class():
    matrix = pm.Transition.pair(4, 0.45).matrix
    assert matrix[0, 1] == matrix[3, 0] == 0.45
    assert matrix.diagonal().eq(0.55).all()


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor, lambda m: torch.tensor(m, dtype=torch.float32)])
def test_accepts_lists_arrays_and_tensors(kind):
    noise = pm.Transition(kind([[0.7, 0.3], [0.1, 0.9]]))
    assert noise.matrix.dtype == torch.float64
    assert_close(noise.matrix.sum(1), torch.ones(2).double(), rtol=0, atol=1e-15)


def test_does_not_alias_what_it_was_given():
    given_matrix = torch.eye(3, dtype=torch.float64)
    noise = pm.Transition(given_matrix)
    given_matrix[0, 0] = 5
    assert noise == pm.Transition.identity(3)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0.5, 0.4], [0.1, 0.9]], "row 0 .* sums to 0.9"),
        ([[0.7, 0.1], [0.3, 0.9]], "pass the transpose"),
        ([[1.1, -0.1], [0.0, 1.0]], "negative entry -0.1 at row 0, column 1"),
        ([[1.0, 0.0]], "square"),
        ([[1.0]], "two classes"),
        ([[math.nan, 1.0], [0.0, 1.0]], "nan at row 0, column 0"),
        ([["a", "b"], ["c", "d"]], "array of probabilities"),
        ([[1.0, 0.0], [1.0]], "array of probabilities"),
    ],
)
def test_bad_matrices(matrix, words):
    with pytest.raises(InputError, match=words):
        pm.Transition(matrix)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pm.Transition.symmetric(1, 0.1), "two classes"),
        (lambda: pm.Transition.symmetric(10, 1.5), r"eta .* \[0, 1\], got 1.5"),
        (lambda: pm.Transition.symmetric(10, math.nan), "nan"),
        (lambda: pm.Transition.binary(-0.1, 0.2), "e0 is a probability"),
        (lambda: pm.Transition.uniform_off_diagonal([0.8, 0.7, 0.6]), "negative probability"),
        (lambda: pm.Transition.uniform_off_diagonal([[0.1], [0.2]]), "one rate for each class"),
        (lambda: pm.Transition.asymmetric("cifar", 0.1), "Did you mean 'cifar10'"),
        (lambda: pm.Transition.flips(3, {0: 3}, 0.1), "0→3 is not a flip"),
        (lambda: pm.Transition.identity(2).noise_rate([1, 2, 3]), "2 non-negative frequencies"),
        (lambda: pm.Transition.identity(2).noise_rate([1, -1]), "negative"),
        (lambda: pm.Transition.identity(3).correct(torch.ones(4, 2)), r"\(…, 3\)"),
        (lambda: pm.Transition.identity(3).correct(torch.ones(3, dtype=torch.int64)), "int64"),
    ],
)
def test_bad_arguments(make, words):
    with pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (pm.Transition.binary(0.5, 0.5), r"e0 \+ e1 = 1"),
        (pm.Transition.binary(0.7, 0.6), r"e0 \+ e1 = 1.3"),
        (pm.Transition.symmetric(10, 0.9), r"η = 0.9, .* \(K−1\)/K = 0.9"),
        (pm.Transition.symmetric(10, 0.95), "symmetric noise"),
        (pm.Transition.uniform_off_diagonal([0.6, 0.4, 0.1]), "Σe = 1.1"),
        (pm.Transition([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]), "singular"),
    ],
)
@pytest.mark.parametrize("correction", ["objective", "posterior", "forward", "factored"])
def test_corrections_refuse_noise_that_cannot_be_undone(noise, correction, words):
    with pytest.raises(InputError, match=words):
        pm.FPMLLoss("gan", transition=noise, correction=correction)


def test_singular_inverse_says_why():
    with pytest.raises(InputError, match=r"cannot be told apart.* sum to 1"):
        _ = pm.Transition.symmetric(4, 0.75).inverse


@few
@given(data=st.data(), classes=st.integers(2, 6))
def test_correct_undoes_corrupt(data, classes):
    noise, p = data.draw(invertible(classes)), data.draw(probabilities(classes))
    assert_close(noise.correct(noise.corrupt_posterior(p)), p, rtol=0, atol=1e-9)
    assert_close(noise.inverse.sum(1), torch.ones(classes).double(), rtol=0, atol=1e-9)


@few
@given(data=st.data(), classes=st.integers(2, 6))
def test_uniform_noise_has_the_papers_structure(data, classes):
    """P = (1 − Σe)·I + 1·eᵀ, recognised again from the matrix alone."""
    e = data.draw(rates(classes))
    noise = pm.Transition.uniform_off_diagonal(e)
    identity = torch.eye(classes, dtype=torch.float64)
    assert_close(noise.matrix, (1 - e.sum()) * identity + e.expand(classes, classes))
    assert_close(noise.uniform_rates, e, rtol=0, atol=1e-9)


def test_other_noise_is_not_called_uniform():
    assert pm.Transition.pair(4, 0.3).uniform_rates is None
    assert pm.Transition.asymmetric("cifar10", 0.2).uniform_rates is None


def test_noise_rate_under_a_prior():
    noise = pm.Transition.binary(0.1, 0.3)
    assert noise.noise_rate() == pytest.approx(0.2)
    assert noise.noise_rate([1, 3]) == pytest.approx(0.25 * 0.3 + 0.75 * 0.1)


def test_condition_number_of_symmetric_noise():
    """The eigenvalues are 1 and 1 − ηK/(K−1)."""
    assert pm.Transition.symmetric(5, 0.4).condition_number == pytest.approx(1 / (1 - 0.4 * 5 / 4))


def test_equality_hash_pickle_and_copy():
    noise = pm.Transition.pair(3, 0.2)
    for twin in (pickle.loads(pickle.dumps(noise)), copy.deepcopy(noise), pm.Transition(noise)):
        assert twin == noise
        assert hash(twin) == hash(noise)
    assert noise != pm.Transition.pair(3, 0.3)


def test_large_matrix():
    noise = pm.Transition.symmetric(1000, 0.5)
    p = torch.softmax(torch.randn(7, 1000), -1)
    assert_close(noise.correct(noise.corrupt_posterior(p)), p, rtol=0, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_factors_multiply_to_the_matrix(seed):
    random_rows = torch.distributions.Dirichlet(torch.ones(4, dtype=torch.float64))
    torch.manual_seed(seed)
    noise = pm.Transition(0.6 * torch.eye(4, dtype=torch.float64) + 0.4 * random_rows.sample((4,)))
    confusions, random = noise.factors
    torch.testing.assert_close(confusions.matrix @ random.matrix, noise.matrix)
    assert torch.equal(confusions.matrix.amin(0), torch.zeros(4, dtype=torch.float64))  # nothing is left that all share
    assert random.uniform_rates is not None


def test_factors_of_symmetric_noise_and_of_none():
    for classes, eta in ((2, 0.3), (5, 0.4), (10, 0.6), (100, 0.4)):
        confusions, random = pm.Transition.symmetric(classes, eta).factors
        assert torch.equal(confusions.matrix, torch.eye(classes, dtype=torch.float64))
        torch.testing.assert_close(random.matrix, pm.Transition.symmetric(classes, eta).matrix)
    assert pm.Transition.identity(3).factors == (pm.Transition.identity(3), pm.Transition.identity(3))


def test_factors_of_nothing_but_noise():
    with pytest.raises(pm.InputError, match="almost equal"):
        _ = pm.Transition(torch.full((3, 3), 1 / 3)).factors
