"""Paired tests and Holm's correction against scipy, naive code and published values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from postmax.errors import InputError
from postmax.tables.statistics import holm, paired_test

# Student's sleep data: R's t.test(extra ~ group, paired = TRUE) gives t = −4.0621, p = 0.002833.
SLEEP = (
    [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
    [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
)


def by_seed(values):
    return dict(enumerate(values))


def test_t_test_on_known_data():
    found = paired_test(by_seed(SLEEP[0]), by_seed(SLEEP[1]))
    assert found.p_value == pytest.approx(0.002833, abs=5e-7)
    assert found.difference == pytest.approx(-1.58)
    assert found.n == 10


def test_overlapping_splits_by_hand():
    # Differences 1, 2, 0.5, 2.5: mean 1.5, s² = 2.5 / 3; the variance of the mean is s² (1/4 + 1/4).
    found = paired_test(by_seed([91.0, 92.0, 90.5, 92.5]), by_seed([90.0] * 4), overlap=0.25)
    t = 1.5 / math.sqrt(2.5 / 3 * 0.5)
    assert found.p_value == pytest.approx(2 * scipy.stats.t.sf(t, 3))
    assert found.p_value == pytest.approx(0.1027, abs=5e-5)
    plain = paired_test(by_seed([91.0, 92.0, 90.5, 92.5]), by_seed([90.0] * 4))
    assert plain.p_value == pytest.approx(2 * scipy.stats.t.sf(1.5 / math.sqrt(2.5 / 3 / 4), 3))


def test_equal_differences_of_overlapping_splits_claim_less():
    # Twenty seeds with a quarter as many test rows are worth 20 / (1 + 20 / 4) independent ones.
    found = paired_test(by_seed([2.0] * 20), by_seed([1.0] * 20), overlap=0.25)
    assert found.p_value == pytest.approx(2 ** (1 - 20 / 6))
    assert paired_test(by_seed([2.0] * 2), by_seed([1.0] * 2), overlap=9.0).p_value == 1.0


def test_random_splits_of_the_same_rows_need_the_correction():
    """Two equally good classifiers: of many data sets, only one in twenty may show a difference at 5 %."""
    rng = np.random.default_rng(0)
    rows, test_rows, seeds, worlds = 250, 50, 20, 500
    false_alarms = {0.0: 0, test_rows / (rows - test_rows): 0}
    for _ in range(worlds):
        right = rng.random((2, rows)) < 0.9
        held_out = rng.permuted(np.tile(np.arange(rows), (seeds, 1)), axis=1)[:, :test_rows]
        first, second = (by_seed(one[held_out].mean(1)) for one in right)
        for overlap in false_alarms:
            false_alarms[overlap] += paired_test(first, second, overlap).p_value < 0.05
    plain, corrected = (count / worlds for count in false_alarms.values())
    assert plain > 0.3
    assert 0.025 < corrected < 0.075


@given(st.lists(st.tuples(*[st.integers(0, 114)] * 2), min_size=2, max_size=7))
@settings(deadline=None, max_examples=50)
def test_paired_tests_agree_with_scipy(counts):
    first, second = ([100 * pair[side] / 114 for pair in counts] for side in (0, 1))
    differences = [pair[0] - pair[1] for pair in counts]
    t = paired_test(by_seed(first), by_seed(second)).p_value
    if len(set(differences)) > 1:
        assert t == pytest.approx(scipy.stats.ttest_rel(first, second).pvalue, rel=1e-6)
    else:
        assert t == (2.0 ** (1 - len(counts)) if differences[0] else 1.0)


def test_only_common_seeds_count():
    first = {0: 5.0, 1: 6.0, 2: 8.0, 7: 100.0}
    second = {2: 7.0, 0: 3.0, 1: 5.5, 9: -100.0}
    assert paired_test(first, second) == paired_test({0: 5.0, 1: 6.0, 2: 8.0}, {0: 3.0, 1: 5.5, 2: 7.0})


def test_too_few_seeds_and_equal_values():
    assert paired_test({}, {0: 1.0}).p_value is None
    assert math.isnan(paired_test({}, {}).difference)
    one = paired_test({0: 2.0}, {0: 1.0})
    assert (one.n, one.difference, one.p_value) == (1, 1.0, None)
    assert paired_test(by_seed([1.0, 2.0]), by_seed([1.0, 2.0])).p_value == 1.0
    # Two differences that are equal but for their last bits are no proof.
    assert paired_test(by_seed([0.1 + 0.2, 0.5]), by_seed([0.2, 0.4])).p_value == 0.5


def test_refuses_what_it_cannot_test():
    with pytest.raises(InputError, match="finite"):
        paired_test(by_seed([1.0, math.nan]), by_seed([1.0, 2.0]))
    with pytest.raises(InputError, match="at least 0; got -1"):
        paired_test(by_seed([1.0, 3.0]), by_seed([1.0, 2.0]), overlap=-1)


def test_holm_on_known_values():
    # What p.adjust of R gives for them with method holm.
    assert holm([0.01, 0.02, 0.03, 0.04, 0.005]) == pytest.approx([0.04, 0.06, 0.06, 0.06, 0.025])
    assert holm([]) == []
    assert holm([None, 0.9, None, 0.8]) == [None, 1.0, None, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0.001, 0.999))
@settings(deadline=None)
def test_holm_rejects_what_the_closed_test_rejects(p_values, level):
    """Holm is the closure of Bonferroni: a hypothesis falls if every set that holds it falls."""
    places = range(len(p_values))
    sets = [s for size in range(1, len(p_values) + 1) for s in itertools.combinations(places, size)]
    for place, adjusted in zip(places, holm(p_values), strict=True):
        if abs(adjusted - level) > 1e-9:
            closed = all(min(p_values[i] for i in s) * len(s) <= level for s in sets if place in s)
            assert (adjusted <= level) == closed
