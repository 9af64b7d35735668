"""Features that say nothing are told apart from features that say little, and the test does not cry wolf."""

import numpy as np
import pytest
import torch
from checking.planted import kinds

from postmax.checking.detectors.no_signal import p_value, surprise


def drawn(rows, columns, strength, seed, shape=lambda x: x, classes=2):
    draw = np.random.default_rng(seed)
    features = draw.normal(size=(rows, columns)).astype(np.float32)
    if strength == 0:
        return features, draw.integers(0, classes, rows)
    chance = 1 / (1 + np.exp(-strength * shape(features[:, 0])))
    return features, (draw.random(rows) < chance).astype(int)


@pytest.mark.parametrize(("rows", "columns", "classes"), [(100, 3, 2), (400, 20, 3), (1000, 50, 10)])
def test_noise_says_nothing(rows, columns, classes):
    for seed in range(4):
        features, labels = drawn(rows, columns, 0, seed, classes=classes)
        assert kinds(features, labels) == ["cannot tell"]


@pytest.mark.parametrize(
    ("rows", "columns", "strength", "shape"),
    [
        (300, 5, 1.0, lambda x: x),  # 69 % of the labels can be foreseen
        (2000, 20, 0.4, lambda x: x),  # 58 %
        (5000, 50, 0.25, lambda x: x),  # 55 %
        (1000, 5, 1.2, lambda x: np.abs(x) - 0.8),  # no line tells these classes apart
        (1000, 5, 2.0, lambda x: np.sign(np.sin(4 * x))),
    ],
)
def test_a_weak_signal_is_not_called_nothing(rows, columns, strength, shape):
    for seed in range(3):
        assert kinds(*drawn(rows, columns, strength, seed, shape)) == []


def test_heavy_noise_in_the_labels_leaves_a_signal():
    features, labels = drawn(1000, 5, 20.0, 0)
    flip = np.random.default_rng(1).random(1000) < 0.4
    assert kinds(features, np.where(flip, 1 - labels, labels)) == []


@pytest.mark.thorough
def test_chance_is_seldom_taken_for_a_signal():
    """At the level of 5 %, of 25 tables of noise one or two may be taken for a signal, but hardly five."""
    taken = 0
    for seed in range(25):
        features, labels = drawn(150, 4, 0, 100 + seed)
        taken += p_value(torch.from_numpy(features), torch.from_numpy(labels)) <= 0.05
    assert taken <= 4


def test_surprise_against_permutations():
    """Mean and variance over all orders within a part, with the variance doubled as the docstring says."""
    draw = torch.Generator().manual_seed(0)
    scores = torch.randn(90, 4, generator=draw, dtype=torch.float64)
    labels = torch.randint(0, 4, (90,), generator=draw)
    part = torch.arange(90) % 3
    own = float(scores.gather(1, labels[:, None]).sum())
    totals = []
    for _ in range(4000):
        total = 0.0
        for number in range(3):
            rows = (part == number).nonzero()[:, 0]
            shuffled = labels[rows[torch.randperm(len(rows), generator=draw)]]
            total += float(scores[rows].gather(1, shuffled[:, None]).sum())
        totals.append(total)
    expected = (own - np.mean(totals)) / np.std(totals) / 2**0.5
    assert surprise(scores, labels, part) == pytest.approx(expected, abs=0.05)


def test_images_and_few_rows_are_not_judged():
    features, labels = drawn(20, 3, 0, 0)
    assert kinds(features, labels) == []
    images = np.random.default_rng(0).integers(0, 255, (100, 8, 8), dtype=np.uint8)
    assert kinds(images, np.arange(100) % 2) == []
