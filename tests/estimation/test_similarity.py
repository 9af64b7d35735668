"""The share of the noise that follows the similarity of the classes."""

import math

import pytest
import torch
from scipy import stats

from postmax import Transition
from postmax.estimation.similarity import _slope, share_that_follows_similarity


def posterior(k, n=4000, width=1.5):
    """Classes on a line: neighbours are probable together."""
    x = torch.linspace(-1, k, n, dtype=torch.float64)
    return (-((x[:, None] - torch.arange(k)) ** 2) / width).softmax(1)


def similarity(d):
    together = d.T @ d
    return together / together.sum(1, keepdim=True)


def follows(d, rate):
    """Noise proportional to similarity."""
    off = similarity(d).fill_diagonal_(0)
    return off * rate / off.sum(1).max() + torch.diag(1 - (off * rate / off.sum(1).max()).sum(1))


@pytest.mark.parametrize("k", [3, 4, 10])
def test_uniform_noise_follows_nothing(k):
    assert share_that_follows_similarity(Transition.symmetric(k, 0.4).matrix, posterior(k)) == pytest.approx(
        0, abs=1e-6
    )


@pytest.mark.parametrize("k", [4, 10])
def test_noise_in_proportion_to_similarity_follows_it(k):
    d = posterior(k)
    assert share_that_follows_similarity(follows(d, 0.5), d) > 0.95


def test_noise_against_similarity_does_not_follow_it():
    d = posterior(6)
    off = (1 - similarity(d)).fill_diagonal_(0)
    matrix = 0.3 * off / off.sum(1, keepdim=True) + 0.7 * torch.eye(6)
    assert share_that_follows_similarity(matrix, d) == 0


def test_the_share_grows_with_the_part_of_the_noise_that_follows():
    d = posterior(8)
    mixed = [w * follows(d, 0.4) + (1 - w) * Transition.symmetric(8, 0.4).matrix for w in (0.0, 0.3, 0.6, 1.0)]
    shares = [share_that_follows_similarity(matrix, d) for matrix in mixed]
    assert shares == sorted(shares)
    assert shares[0] < 0.01 < 0.1 < shares[2]


def test_the_share_in_loops():
    d, k = posterior(5, n=60), 5
    generator = torch.Generator().manual_seed(0)
    matrix = 0.6 * follows(d, 0.4) + 0.4 * torch.rand(5, 5, generator=generator, dtype=torch.float64).softmax(1)
    rows = d.tolist()
    s = [[sum(r[i] * r[j] for r in rows) / sum(r[i] for r in rows) for j in range(k)] for i in range(k)]
    pairs = [(i, j) for i in range(k) for j in range(k) if i != j]
    line = stats.linregress([s[i][j] for i, j in pairs], [matrix[i, j].item() for i, j in pairs])
    assert line.intercept > 0
    assert line.slope > 2 * line.stderr
    share = line.slope * sum(s[i][j] for i, j in pairs) / (sum(matrix[i, j].item() for i, j in pairs) + 0.01 * k)
    assert 0 < share < 1
    assert share_that_follows_similarity(matrix, d) == pytest.approx(3 * share**2 - 2 * share**3)


@pytest.mark.parametrize("seed", range(5))
def test_slope_and_standard_error_are_those_of_scipy(seed):
    generator = torch.Generator().manual_seed(seed)
    x, noise = torch.rand(2, 40, generator=generator, dtype=torch.float64)
    y = 3 + 0.5 * x + 0.2 * noise
    line = stats.linregress(x.numpy(), y.numpy())
    assert _slope(x, y) == pytest.approx((line.slope, line.stderr))


def test_a_line_with_a_negative_intercept_is_drawn_through_the_origin():
    x = torch.tensor([1.0, 2.0, 3.0, 4.0]).double()
    y = torch.tensor([0.0, 1.1, 1.9, 3.2]).double()
    line = stats.linregress(x.numpy(), y.numpy())
    assert line.intercept < 0
    slope, error = _slope(x, y)
    assert slope == pytest.approx(float((x * y).sum() / (x * x).sum()))
    assert error == pytest.approx(line.stderr)


def test_two_classes_have_nothing_to_compare():
    d = posterior(2)
    assert share_that_follows_similarity(Transition.binary(0.3, 0.2).matrix, d) == 0


@pytest.mark.parametrize("k", [3, 7])
def test_degenerate_input_gives_zero(k):
    d = posterior(k)
    level = torch.full((50, k), 1 / k, dtype=torch.float64)
    corners = torch.eye(k, dtype=torch.float64)
    noisy = Transition.pair(k, 0.3).matrix
    assert share_that_follows_similarity(torch.eye(k, dtype=torch.float64), d) == 0
    assert share_that_follows_similarity(noisy, corners) == 0
    assert share_that_follows_similarity(noisy, level) == pytest.approx(0, abs=1e-6)
    assert share_that_follows_similarity(noisy, corners[:1].repeat(9, 1)) == 0
    assert _slope(torch.ones(6), torch.rand(6)) == (0.0, math.inf)


def test_hardly_any_noise_has_no_pattern():
    d = posterior(6)
    assert share_that_follows_similarity(follows(d, 0.001), d) < 0.02
