"""Means, paired tests and Holm's correction against scipy, naive code and published values."""

from __future__ import annotations

import itertools
import math

import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from postmax.bench.statistics import holm, paired_test, summarise
from postmax.errors import InputError

# Student's sleep data: R's t.test(extra ~ group, paired = TRUE) gives t = −4.0621, p = 0.002833.
SLEEP = (
    [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
    [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
)


def by_seed(values):
    return dict(enumerate(values))


def test_summary():
    found = summarise([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert (found.mean, found.n) == (5.0, 8)
    assert found.std == pytest.approx(math.sqrt(32 / 7))
    assert str(summarise([3.0])) == "3.00 (1)"
    assert str(summarise([])) == "–"
    assert math.isnan(summarise([3.0]).std)


def test_t_test_on_known_data():
    found = paired_test(by_seed(SLEEP[0]), by_seed(SLEEP[1]))
    assert found.p_value == pytest.approx(0.002833, abs=5e-7)
    assert found.difference == pytest.approx(-1.58)
    assert found.n == 10


def test_wilcoxon_on_known_data():
    # Ranks 1…6 all of one sign: exact p = 2 / 2⁶.
    found = paired_test(by_seed([1, 2, 3, 4, 5, 6]), by_seed([0] * 6), method="wilcoxon")
    assert found.p_value == pytest.approx(2 / 64)


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
    w = paired_test(by_seed(first), by_seed(second), method="wilcoxon").p_value
    if any(differences):
        assert w == pytest.approx(scipy.stats.wilcoxon(differences).pvalue, abs=1e-9)
    else:
        assert w == 1.0


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
    with pytest.raises(InputError, match="wilcoxon"):
        paired_test(by_seed([1.0, 3.0]), by_seed([1.0, 2.0]), method="welch")


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
