"""The accuracy on right labels, found from wrong ones, against the truth."""

from __future__ import annotations

import numpy as np
import pytest

import postmax as pm
from postmax.fitting.expected import accuracy_on_right_labels


def predictions(count: int, k: int, accuracy: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """True classes, and predictions that are right with a probability that differs from class to class."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, k, count)
    chance = accuracy + 0.1 * (truth == 0)
    other = (truth + generator.integers(1, k, count)) % k
    return truth, np.where(generator.random(count) < chance, truth, other)


MATRICES = {
    "symmetric": pm.Transition.symmetric(4, 0.4),
    "pair": pm.Transition.pair(4, 0.3),
    "one class": pm.Transition([[0.6, 0.4, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0.2, 0, 0, 0.8]]),
}


@pytest.mark.parametrize("name", MATRICES)
def test_it_is_the_accuracy_on_true_classes(name):
    noise = MATRICES[name]
    truth, predicted = predictions(200_000, 4, 0.75, seed=1)
    labels = noise.corrupt(truth, seed=2).labels.numpy()
    found = accuracy_on_right_labels(predicted, labels, noise.matrix.numpy(), (0.3, 0.3, 0.3))
    assert found.expected == pytest.approx((predicted == truth).mean(), abs=0.006)
    assert found.agreement == (predicted == labels).mean()
    assert found.agreement < found.expected - 0.1


def test_it_is_what_a_loop_over_rows_gives():
    noise = MATRICES["one class"].matrix.numpy()
    truth, predicted = predictions(50, 4, 0.75, seed=1)
    labels = MATRICES["one class"].corrupt(truth, seed=2).labels.numpy()
    found = accuracy_on_right_labels(predicted, labels, noise, (0.3, 0.3, 0.3))
    total = 0.0
    for label, guess in zip(labels, predicted, strict=True):
        # The vector v with Σ_j T[i, j]·v[j] = 1 for i = guess and 0 otherwise.
        total += np.linalg.solve(noise, np.eye(4)[guess])[label]
    assert found.expected == pytest.approx(total / 50, abs=1e-12)


def test_the_interval_holds_the_truth_when_the_noise_is_known():
    noise = MATRICES["symmetric"]
    held = 0
    for seed in range(200):
        truth, predicted = predictions(300, 4, 0.7, seed)
        labels = noise.corrupt(truth, seed=seed + 1000).labels.numpy()
        found = accuracy_on_right_labels(predicted, labels, noise.matrix.numpy(), (0.4, 0.4, 0.4))
        held += found.low <= (predicted == truth).mean() <= found.high
    # The truth varies with the rows, too, so the interval may hold it more often than in 95 % of the cases.
    assert held >= 185


def test_an_unknown_rate_makes_the_interval_wider():
    truth, predicted = predictions(2000, 4, 0.7, 0)
    labels = MATRICES["symmetric"].corrupt(truth, seed=1).labels.numpy()
    matrix = MATRICES["symmetric"].matrix.numpy()
    known = accuracy_on_right_labels(predicted, labels, matrix, (0.4, 0.4, 0.4))
    unknown = accuracy_on_right_labels(predicted, labels, matrix, (0.4, 0.3, 0.5))
    assert unknown.expected == known.expected
    assert unknown.low < known.low - 0.05
    assert unknown.high > known.high + 0.05


def test_clean_labels_need_no_correction():
    truth, predicted = predictions(500, 4, 0.7, 0)
    found = accuracy_on_right_labels(predicted, truth, np.eye(4), (0.0, 0.0, 0.1))
    assert found.expected == pytest.approx((predicted == truth).mean())
    assert found.high > found.expected + 0.05  # a tenth of the labels may be wrong


def test_noise_that_leaves_nothing_says_nothing():
    truth, predicted = predictions(500, 4, 0.7, 0)
    found = accuracy_on_right_labels(predicted, truth, np.full((4, 4), 0.25), (0.75, 0.7, 0.75))
    assert found.expected is None
    assert (found.low, found.high) == (0.0, 1.0)
