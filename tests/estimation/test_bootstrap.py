"""Intervals: the percentiles they claim to be, drawn as they claim, and as wide as they should be."""

import numpy as np
import pytest
import torch
from scipy import stats
from synthetic import MATRICES, problem

from postmax.estimation.bootstrap import _KEPT_ELEMENTS, Replicates, bootstrap
from postmax.estimation.estimator import Solution
from postmax.estimation.likelihood import PosteriorLikelihood


class Recorder:
    """A method that answers with the mean of the rows it is given."""

    def __init__(self, bounds=None):
        self.seen, self.starts, self.bounds = [], [], bounds

    def solve(self, rows, num_classes, start=None):
        self.seen.append(rows)
        self.starts.append(start)
        mean = float(rows[0].double().mean())
        matrix = torch.full((num_classes, num_classes), mean, dtype=torch.float64)
        return Solution(matrix, torch.full((num_classes,), 1 / num_classes).double(), self.bounds)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_the_interval_is_numpys_percentile_interval(level):
    values = torch.randn(40, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    low, high = Replicates(values, values[:, 0, 0], None).interval(values, level)
    expected = np.percentile(values.numpy(), [50 * (1 - level), 50 * (1 + level)], axis=0)
    np.testing.assert_allclose(low, expected[0])
    np.testing.assert_allclose(high, expected[1])


def test_rows_are_drawn_with_replacement_and_stay_together():
    method, start = Recorder(), Solution(torch.eye(2).double(), torch.ones(2).double() / 2)
    bootstrap(method, (torch.arange(50), torch.arange(50) * 2), start, 2, 8, 0)
    assert len(method.seen) == 8
    for first, second in method.seen:
        assert torch.equal(2 * first, second)
        assert len(first) == 50
        assert 20 < len(first.unique()) < 45
    assert all(given is start for given in method.starts)
    assert not torch.equal(method.seen[0][0], method.seen[1][0])


def test_every_row_is_drawn_equally_often():
    method = Recorder()
    bootstrap(method, (torch.arange(20),), None, 2, 400, 1)
    counts = torch.cat([rows[0] for rows in method.seen]).bincount(minlength=20)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_the_seed_decides_and_the_global_generator_does_not():
    rows = (torch.arange(30).double(),)
    drawn = []
    for seed, outside in ((3, 0), (3, 1), (4, 0)):
        torch.manual_seed(outside)
        drawn.append(bootstrap(Recorder(), rows, None, 2, 5, seed).matrices)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


@pytest.mark.parametrize(
    ("n", "k", "replicates", "expected"),
    [(3, 2, 100, 100), (3, 500, 200, 120), (3, 1000, 100, 30), (3, 3000, 100, 10), (10**6, 20, 100, 20)],
)
def test_fewer_replicates_are_drawn_for_many_classes_and_many_rows(n, k, replicates, expected):
    class Small(Recorder):
        def solve(self, rows, num_classes, start=None):
            assert num_classes == k
            return super().solve((rows[0][:1],), 2)

    assert len(bootstrap(Small(), (torch.arange(n),), None, k, replicates, 0).matrices) == expected


def test_bounds_are_kept_where_there_are_some():
    rows = (torch.arange(3),)
    assert bootstrap(Recorder(), rows, None, 2, 3, 0).bounds is None
    bounds = bootstrap(Recorder((0.1, 0.4)), rows, None, 2, 3, 0).bounds
    assert bounds.tolist() == [[0.1, 0.4]] * 3


def test_noise_rates_are_those_of_the_replicates():
    found = bootstrap(Recorder(), (torch.rand(10),), None, 2, 4, 0)
    assert found.noise_rates.tolist() == pytest.approx([1 - float(m[0, 0]) for m in found.matrices])


def test_as_many_elements_as_are_kept_fit_into_a_quantile():
    replicates = torch.zeros(_KEPT_ELEMENTS // 1000**2, 1000, 1000)
    low, high = Replicates(replicates, replicates[:, 0, 0], None).interval(replicates, 0.95)
    assert low.shape == high.shape == (1000, 1000)


@pytest.mark.parametrize("freedom", [2, 4, 9, 30])
def test_few_replicates_give_students_interval(freedom):
    values = torch.linspace(0.3, 0.4, freedom + 1, dtype=torch.float64)[:, None]
    low, high = Replicates(values, values[:, 0], None).interval(values, 0.95)
    reach = stats.t.ppf(0.975, freedom) * float(values.std(0))
    # The expansion is 5 % short for two degrees of freedom and exact to 0.1 % from nine on.
    assert float(high - low) / 2 == pytest.approx(reach, rel=0.05 if freedom < 9 else 1e-3)
    assert float(high + low) / 2 == pytest.approx(0.35)


def test_students_interval_stays_a_probability():
    values = torch.tensor([[0.0], [0.5], [1.0]], dtype=torch.float64)
    low, high = Replicates(values, values[:, 0], None).interval(values, 0.95)
    assert (float(low), float(high)) == (0.0, 1.0)


def coverage(rows_of, sets, replicates):
    method = PosteriorLikelihood(class_conditional=True)
    hits = 0
    for seed in range(sets):
        data = problem(MATRICES[2], 300, seed=seed, separation=4)
        rows = rows_of(data)
        found = bootstrap(method, rows, method.solve(rows, 2), 2, replicates, seed)
        low, high = found.interval(found.noise_rates, 0.95)
        hits += bool(low <= 0.2 <= high)
    return stats.binomtest(hits, sets, 0.95).pvalue


@pytest.mark.thorough
def test_intervals_given_the_scores_cover_the_noise_rate_as_often_as_they_say():
    assert coverage(lambda data: (data.clean.log(), data.labels), sets=24, replicates=19) > 0.01


@pytest.mark.thorough
def test_intervals_from_mixed_probabilities_cover_it_too():
    """Unmixing looks at the labels: left out of the bootstrap, it would make the interval too narrow."""

    def mixed(data):
        return data.probabilities, data.labels, torch.ones_like(data.labels, dtype=torch.bool)

    assert coverage(mixed, sets=24, replicates=19) > 0.01
