"""Unmixing a posterior with a first guess of the matrix."""

import itertools

import pytest
import torch
from synthetic import MATRICES, problem, random_probabilities

from postmax.estimation import unmix as module
from postmax.estimation.unmix import labels_of_the_surest, undo, unmix


def naive_undo(row, matrix, steps):
    """Richardson–Lucy for one row, in loops, with the objective Σ p·log(Tᵀd) on the way."""
    k = len(row)
    d, objective = [1 / k] * k, []
    for _ in range(steps):
        mixed = [sum(d[i] * matrix[i][j] for i in range(k)) for j in range(k)]
        d = [d[i] * sum(row[j] / mixed[j] * matrix[i][j] for j in range(k)) for i in range(k)]
        after = torch.tensor([sum(d[i] * matrix[i][j] for i in range(k)) for j in range(k)])
        objective.append(float((torch.tensor(row) * after.log()).sum()))
    return d, objective


@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_steps_are_those_of_plain_loops_and_climb(k):
    matrix = MATRICES[k].matrix.clamp_min(1e-3)
    matrix = matrix / matrix.sum(1, keepdim=True)
    p = random_probabilities(6, k, sharpness=1)
    found = undo(p, matrix)
    for row, mine in zip(p.tolist(), found.tolist(), strict=True):
        expected, objective = naive_undo(row, matrix.tolist(), 100)
        assert mine == pytest.approx(expected)
        assert all(later >= earlier - 1e-6 for earlier, later in itertools.pairwise(objective))
    torch.testing.assert_close(found.sum(1), torch.ones(6, dtype=torch.float64))


@pytest.mark.parametrize("k", [2, 3])
def test_the_clean_posterior_is_a_fixed_point_of_the_steps(monkeypatch, k):
    """With p = Tᵀd inside the simplex the maximum is d itself; many steps get there."""
    monkeypatch.setattr(module, "_FEWEST_STEPS", 3000)
    clean = random_probabilities(20, k, sharpness=0.5)
    torch.testing.assert_close(undo(clean @ MATRICES[k].matrix, MATRICES[k].matrix), clean, atol=1e-6, rtol=0)


def test_plateaus_become_corners():
    """A row whose noisy posterior is a row of T is surely of that class."""
    matrix = MATRICES[3].matrix
    assert (undo(matrix, matrix).diagonal() > 0.99).all()


def test_the_result_is_positive_also_where_the_posterior_is_zero():
    p = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).double().repeat(20, 1)
    clean = unmix(p, torch.arange(60) % 3)
    assert (clean > 0).all()
    torch.testing.assert_close(clean.sum(1), torch.ones(60, dtype=torch.float64))


def test_rows_keep_their_order():
    """Also beyond the levels of T, where an inverse followed by a projection puts all of them in one corner."""
    first = torch.linspace(0.01, 0.99, 300, dtype=torch.float64)
    clean = undo(torch.stack([first, 1 - first], 1), MATRICES[2].matrix)
    scores = clean.log()[:, 0] - clean.log()[:, 1]
    assert (scores[1:] > scores[:-1]).all()


def test_the_first_guess_counts_the_labels_of_the_surest_rows():
    p = random_probabilities(500, 4)
    labels = torch.multinomial(p, 1, generator=torch.Generator().manual_seed(0)).flatten()
    rows, y = p.tolist(), labels.tolist()
    expected = []
    for i in range(4):
        size = sum(row.index(max(row)) == i for row in rows)
        surest = sorted(range(500), key=lambda n, i=i: rows[n][i], reverse=True)[: max(30, int(0.3 * size))]
        counts = [(i == j) + 0.5 / 4 + sum(y[n] == j for n in surest) for j in range(4)]
        expected.append([c / sum(counts) for c in counts])
    torch.testing.assert_close(labels_of_the_surest(p, labels), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("elements", [1, 10])
def test_chunks_make_no_difference(monkeypatch, elements):
    data = problem(MATRICES[3], 50)
    whole = unmix(data.probabilities, data.labels)
    monkeypatch.setattr(module, "_CHUNK_ELEMENTS", elements)
    torch.testing.assert_close(unmix(data.probabilities, data.labels), whole)


def test_fewer_rows_than_are_looked_at():
    p = random_probabilities(3, 3)
    assert (unmix(p, torch.arange(3)) > 0).all()
