"""Corruption: the right counts, the right distribution, the same labels for ever."""

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from postmax import Transition
from postmax.errors import InputError, LabelError
from postmax.random_bits import random_bits, random_normal, random_uniform
from postmax.transition import corruption
from postmax.transition.corruption import exact_counts, in_steps

LABELS = torch.arange(5000) % 10

# What seed 7 makes of LABELS, for ever. A change here breaks every result anyone has saved.
PINNED = {
    ("symmetric", True): "ba7cee7473e6a472ad5ca3a009b17279c5e27c65b7d3216dbb1309ce077f443c",
    ("symmetric", False): "3e29b3629fb11afb2cb6a3fa22d073b89ab5e17eec3f95a8ec5001e955e8a590",
    ("inclusive", True): "ac5f9adf4247cb2bf5891458b54354c8ebb3e29bd260a1a8e058d2ecf7d90f4b",
    ("pair", True): "341dbcc35247e5bd2b4013b321c2df4a5dd1f7d5b45f12b54a8d8f155071b376",
    ("asymmetric", True): "972713fde8d4a406c98a0aa4f3c581ba30d02c9e59e8a0e983d8eca6ebc5bc57",
    ("low", True): "4e5f8dc6c7189e1e7e7f34a38be2686a9213b92ddfbbb4b3bafd1c6507143dce",
    ("high", False): "503eb8b552705639310f582d8666bce683df31726b5fb0f6637ee1ea8fa5495b",
}
KINDS = {
    "symmetric": Transition.symmetric(10, 0.4),
    "inclusive": Transition.symmetric(10, 0.4, include_true_class=True),
    "pair": Transition.pair(10, 0.45),
    "asymmetric": Transition.asymmetric("cifar10", 0.4),
    "low": Transition.uniform_off_diagonal("low"),
    "high": Transition.uniform_off_diagonal("high"),
}


@pytest.mark.parametrize(("kind", "exact"), PINNED)
def test_labels_are_pinned(kind, exact):
    assert KINDS[kind].corrupt(LABELS, 7, exact=exact).sha256 == PINNED[kind, exact]


def philox(key: int, words: int) -> list[int]:
    """Philox-4x64 with ten rounds, as published by Salmon et al., in plain Python integers."""
    mask, out, counter = 2**64 - 1, [], 1
    while len(out) < words:
        c = [(counter >> shift) & mask for shift in (0, 64, 128, 192)]
        k = [key & mask, key >> 64]
        for _ in range(10):
            a, b = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
            c = [(b >> 64) ^ c[1] ^ k[0], b & mask, (a >> 64) ^ c[3] ^ k[1], a & mask]
            k = [(k[0] + 0x9E3779B97F4A7C15) & mask, (k[1] + 0xBB67AE8584CAA73B) & mask]
        out += c
        counter += 1
    return out[:words]


@given(st.integers(0, 2**64), st.text(max_size=10), st.integers(0, 9))
def test_random_bits_are_the_published_function(seed, stream, count):
    key = int.from_bytes(hashlib.sha256(f"{stream}:{seed}".encode()).digest()[:16], "little")
    assert random_bits(count, seed, stream).tolist() == philox(key, count)


def test_uniform_and_normal_numbers_have_their_distributions():
    uniform = random_uniform(100_000, 1, "test")
    assert 0 < uniform.min() < uniform.max() < 1
    assert stats.kstest(uniform, "uniform").pvalue > 0.01
    assert stats.kstest(random_normal(100_000, 1, "test"), "norm").pvalue > 0.01


def test_a_negative_seed_is_refused():
    with pytest.raises(InputError, match="seed is a whole number from 0 on, got -1"):
        Transition.pair(10, 0.1).corrupt(LABELS, -1)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_counts_match_the_matrix_to_rounding(kind):
    noisy = KINDS[kind].corrupt(LABELS, 3)
    expected = 500 * KINDS[kind].matrix
    assert (noisy.counts - expected).abs().max() < 1
    assert (noisy.counts - expected).diagonal().abs().max() <= 0.5 + 1e-6
    assert (noisy.counts.sum(1) == 500).all()
    assert (noisy.counts[expected == 0] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_independent_draws_follow_the_matrix(kind):
    p = KINDS[kind].matrix
    counts = KINDS[kind].corrupt(torch.arange(200_000) % 10, 11, exact=False).counts
    assert (counts[p == 0] == 0).all()
    for row, chances in zip(counts, p, strict=True):
        possible = chances > 0
        if possible.sum() > 1:
            assert stats.chisquare(row[possible], 20_000 * chances[possible]).pvalue > 1e-4


def test_which_rows_change_is_random():
    """The changed rows of an exact draw are spread evenly over the data set, and differ between seeds."""
    first, second = (KINDS["symmetric"].corrupt(torch.arange(50_000) % 10, seed) for seed in (0, 1))
    assert stats.kstest(first.mask.nonzero().flatten() / 50_000, "uniform").pvalue > 0.01
    # Two independent draws share η² of the changed rows.
    assert (first.mask & second.mask).double().mean() == pytest.approx(0.16, abs=0.01)


def test_equal_remainders_favour_no_class():
    """One label of ten classes is left over in every class: over seeds each class gets its share of them."""
    sizes = np.full(10, 100)
    matrix = Transition.symmetric(10, 0.1).matrix.numpy()
    extra = sum(exact_counts(sizes, matrix, seed) - np.where(np.eye(10), 90, 1) for seed in range(500))
    off_diagonal = extra[~np.eye(10, dtype=bool)]
    assert off_diagonal.sum() == 500 * 10
    assert stats.chisquare(off_diagonal).pvalue > 1e-3


@given(st.integers(2, 6), st.integers(0, 40), st.integers(0, 1000), st.data())
def test_exact_counts_are_a_rounding(k, size, seed, data):
    weights = data.draw(st.lists(st.lists(st.integers(0, 9), min_size=k, max_size=k), min_size=k, max_size=k))
    matrix = np.array(weights, dtype=float) + np.eye(k)
    matrix /= matrix.sum(1, keepdims=True)
    sizes = np.full(k, size)
    counts = exact_counts(sizes, matrix, seed)
    assert (counts.sum(1) == size).all()
    assert (np.abs(counts - size * matrix) < 1 + 1e-6).all()
    assert (np.abs(counts - size * matrix).diagonal() <= 0.5 + 1e-6).all()
    assert (counts >= 0).all()


def test_small_classes_get_their_share_of_noise():
    """Three hundred classes of about ten rows: most entries of the matrix are a hundredth of a label."""
    sizes = torch.arange(300) % 7 + 7
    noisy = Transition.symmetric(300, 0.3).corrupt(torch.repeat_interleave(torch.arange(300), sizes), 0)
    assert noisy.rate == pytest.approx(0.3, abs=0.015)


def test_symmetric_noise_means_two_things_and_says_which():
    exclusive = Transition.symmetric(10, 0.8).corrupt(LABELS, 0)
    inclusive = Transition.symmetric(10, 0.8, include_true_class=True).corrupt(LABELS, 0)
    assert exclusive.rate == pytest.approx(0.80, abs=1e-3)
    assert inclusive.rate == pytest.approx(0.72, abs=1e-3)
    assert "true class excluded" in exclusive.definition
    assert "true class included" in inclusive.definition


def test_the_papers_matrices_have_their_published_rates():
    assert Transition.uniform_off_diagonal("low").noise_rate() == pytest.approx(0.18)
    assert Transition.uniform_off_diagonal("high").noise_rate() == pytest.approx(0.531)
    with pytest.raises(InputError, match=r"'hi'.*Known: high, low"):
        Transition.uniform_off_diagonal("hi")


def test_superclass_noise_stays_inside_the_superclass():
    p = Transition.asymmetric("cifar100-superclass", 0.3).matrix
    aquatic_mammals = [4, 30, 55, 72, 95]
    assert p[4].nonzero().flatten().tolist() == [4, 30]
    assert p[95].nonzero().flatten().tolist() == [4, 95]
    block = torch.linalg.matrix_power(p, 10)[4]
    assert block.nonzero().flatten().tolist() == aquatic_mammals


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0, 1, 10], LabelError, "index 2 has label 10, outside 0…9"),
        ([0, -1], LabelError, "index 1 has label -1"),
        ([0.5], InputError, "index 0 holds 0.5"),
        (["cat"], InputError, "encode_labels"),
        ([], InputError, "no rows"),
        ([[1, 2], [3, 4]], InputError, r"shape \(2, 2\)"),
        ([float("nan")], InputError, "no label"),
    ],
)
def test_bad_labels_are_refused(labels, error, message, exact):
    with pytest.raises(error, match=message):
        KINDS["pair"].corrupt(labels, 0, exact=exact)


@pytest.mark.parametrize("exact", [True, False])
def test_no_noise_and_full_noise(exact):
    assert Transition.identity(10).corrupt(LABELS, 0, exact=exact).rate == 0
    assert Transition.pair(10, 1.0).corrupt(LABELS, 0, exact=exact).rate == 1
    one_class = Transition.symmetric(10, 0.3).corrupt([4] * 1000, 0, exact=exact)
    assert 0.25 < one_class.rate < 0.35
    assert one_class.matrix.isnan().all(1).sum() == 9


@given(st.integers(2, 40), st.sampled_from([0.0, 1e-9, 0.3, 1 - 1e-9, 1.0]), st.booleans())
def test_probabilities_in_steps_are_probabilities(k, eta, inclusive):
    """Rounding leaves a few steps over, or too few; they must not make a probability negative."""
    matrix = Transition.symmetric(k, eta, include_true_class=inclusive).matrix.numpy()
    steps = in_steps(matrix, np.arange(k))
    assert steps.min() >= 0
    assert (steps.sum(1) == 2**32).all()
    assert np.abs(steps / 2**32 - matrix).max() < k * 2.0**-32


@pytest.mark.parametrize("k", [2, 3, 7, 8, 11])
@pytest.mark.parametrize("exact", [True, False])
def test_all_labels_wrong_means_all(k, exact):
    assert Transition.symmetric(k, 1.0).corrupt(torch.arange(1000) % k, 0, exact=exact).rate == 1


@pytest.mark.parametrize("seed", [0.0, True, "0"])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InputError, match="seed is a whole number"):
        Transition.pair(10, 0.1).corrupt(LABELS, seed)


def test_many_classes():
    drawn = Transition.symmetric(1500, 0.5).corrupt(torch.arange(30_000) % 1500, 0, exact=False)
    assert drawn.rate == pytest.approx(0.5, abs=0.02)
    assert drawn.labels.max() < 1500


@pytest.mark.parametrize(("bits", "expected"), [(0, 1), (2**31 - 1, 1), (2**31, 3), (2**32 - 1, 3)])
def test_a_draw_on_a_border_never_gives_a_label_of_probability_zero(monkeypatch, bits, expected):
    """Labels 1 and 3 have a probability of one half each; a border belongs to the label above it."""
    monkeypatch.setattr(corruption, "random_bits", lambda count, *_: np.full(count, bits << 32, dtype=np.uint64))
    matrix = np.array([[0.0, 0.5, 0.0, 0.5]] * 4)
    labels = np.arange(4)
    assert corruption.draw_independently(labels, matrix, 0).tolist() == [expected] * 4
    assert corruption.draw_rowwise(labels, matrix, 0).tolist() == [expected] * 4
