"""The simplest noise that explains labels: one rate, unless a matrix explains them significantly better."""

import pytest
import torch

import postmax as pm
from postmax.tabular.noise import SimplestNoise, label_quality, without_noise


def problem(rows, classes, noise, seed=0):
    """Return clean and noisy posteriors, and labels that are drawn from the noisy ones; most true classes are clear."""
    generator = torch.Generator().manual_seed(seed)
    clean = (6 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)).softmax(1)
    noisy = noise.corrupt_posterior(clean)
    return clean, noisy, torch.multinomial(noisy, 1, generator=generator)[:, 0]


def estimate(noisy, labels, **options):
    return pm.estimate_transition(noisy, labels, method=SimplestNoise(**options), replicates=20)


@pytest.mark.parametrize(("classes", "rate"), [(2, 0.3), (3, 0.2), (5, 0.4)])
def test_symmetric_noise_is_one_rate(classes, rate):
    _, noisy, labels = problem(2000, classes, pm.Transition.symmetric(classes, rate))
    found = estimate(noisy, labels, symmetric=True)
    off = found.matrix[~torch.eye(classes, dtype=torch.bool)]
    assert off.max() == off.min()
    assert found.noise_rate == pytest.approx(rate, abs=0.05)
    low, high = found.noise_rate_interval
    assert low <= rate <= high


def test_without_noise_the_interval_begins_at_zero():
    _, noisy, labels = problem(1500, 3, pm.Transition.identity(3))
    found = estimate(noisy, labels)
    assert found.noise_rate < 0.05
    assert found.noise_rate_interval[0] == 0


def test_a_matrix_that_is_not_symmetric_is_found_where_rows_are_many():
    """The posteriors here are those of a network that has not learnt the noise: labels are unlike them."""
    noise = pm.Transition.binary(0.0, 0.4)
    clean, _, labels = problem(4000, 2, noise)
    torch.testing.assert_close(estimate(clean, labels).matrix, noise.matrix, atol=0.08, rtol=0)
    few = estimate(clean[:4], labels[:4])
    assert few.matrix[0, 1] == few.matrix[1, 0]


@pytest.mark.parametrize("seed", range(3))
def test_a_matrix_is_found_where_the_posterior_of_the_label_is_known(seed):
    """Then the labels are explained as well without noise, and only the doubt of the surest rows shows it."""
    noise = pm.Transition.pair(5, 0.35)
    _, noisy, labels = problem(1500, 5, noise, seed)
    found = estimate(noisy, labels)
    assert found.noise_rate == pytest.approx(0.35, abs=0.05)
    torch.testing.assert_close(found.matrix, noise.matrix, atol=0.12, rtol=0)


def test_classes_that_overlap_everywhere_are_not_noise():
    """No row is sure, so unmixing explains the labels clearly worse."""
    generator = torch.Generator().manual_seed(0)
    shares = torch.rand(3000, 1, generator=generator, dtype=torch.float64)
    posterior = torch.cat([0.35 + 0.3 * shares, 0.65 - 0.3 * shares], 1)
    labels = torch.multinomial(posterior, 1, generator=generator)[:, 0]
    low, high = estimate(posterior, labels).noise_rate_interval
    assert low == 0
    assert high > 0.2  # it cannot be told from noise


def test_a_false_alarm_is_rare():
    """At a level of 5 %, symmetric noise is rarely taken for a full matrix."""
    alarms = 0
    for seed in range(20):
        _, noisy, labels = problem(400, 3, pm.Transition.symmetric(3, 0.3), seed)
        solution = SimplestNoise().solve((noisy, labels), 3)
        alarms += float(solution.state[0]) == 1.0
    assert alarms <= 3


def test_without_noise_undoes_the_matrix():
    noise = pm.Transition.pair(3, 0.2)
    clean, noisy, _ = problem(50, 3, noise)
    found = without_noise(noisy, noise)
    torch.testing.assert_close(found.sum(1), torch.ones(50, dtype=torch.float64))
    assert (found - clean).abs().mean() < 0.03
    assert (found > 0).all()
    assert torch.equal(without_noise(noisy, None), noisy)


def test_the_quality_of_a_label_is_bayes_rule():
    noise = pm.Transition([[0.8, 0.2], [0.1, 0.9]])
    posterior = torch.tensor([[0.3, 0.7], [0.9, 0.1]])
    found = label_quality(posterior, torch.tensor([0, 1]), noise)
    assert found == pytest.approx([0.3 * 0.8 / (0.3 * 0.8 + 0.7 * 0.1), 0.1 * 0.9 / (0.1 * 0.9 + 0.9 * 0.2)])
    assert label_quality(posterior, torch.tensor([0, 1]), None) == pytest.approx([0.3, 0.1])
