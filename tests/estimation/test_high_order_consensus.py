"""HOC: the neighbours, the model of three labels, and the matrix behind it."""

import itertools
import math

import pytest
import torch
from synthetic import MATRICES

from postmax import estimate_transition
from postmax.errors import InputError
from postmax.estimation import hoc, neighbours
from postmax.estimation.evidence import gather_evidence
from postmax.estimation.hoc import HighOrderConsensus
from postmax.estimation.neighbours import nearest_neighbours


def similarities(features):
    """Cosines after centring, in plain floats; −2 for a row with itself."""
    n, d = len(features), len(features[0])
    mean = [sum(row[c] for row in features) / n for c in range(d)]
    rows = [[value - m for value, m in zip(row, mean, strict=True)] for row in features]
    length = [math.sqrt(sum(v * v for v in row)) for row in rows]
    return [
        [
            -2.0 if i == j else sum(a * b for a, b in zip(rows[i], rows[j], strict=True)) / (length[i] * length[j])
            for j in range(n)
        ]
        for i in range(n)
    ]


@pytest.mark.parametrize(("n", "d", "count"), [(3, 2, 2), (40, 5, 2), (60, 3, 4)])
def test_neighbours_are_those_of_brute_force(n, d, count):
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(n))
    found = nearest_neighbours(x, count).tolist()
    for i, row in enumerate(similarities(x.tolist())):
        best = sorted(range(n), key=row.__getitem__, reverse=True)[:count]
        assert [row[j] for j in found[i]] == pytest.approx([row[j] for j in best], abs=1e-5)
        assert i not in found[i]
        assert len(set(found[i])) == count


@pytest.mark.parametrize("elements", [1, 100, 333])
def test_chunks_find_the_same_neighbours(monkeypatch, elements):
    x = torch.randn(50, 6, generator=torch.Generator().manual_seed(0))
    whole = nearest_neighbours(x, 2)
    monkeypatch.setattr(neighbours, "_CHUNK_ELEMENTS", elements)
    assert torch.equal(nearest_neighbours(x, 2), whole)


def test_a_row_is_never_its_own_neighbour_also_when_it_has_duplicates():
    """The published code removes the nearest row, which for duplicates may be another one."""
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).repeat_interleave(4, 0)
    found = nearest_neighbours(x, 3)
    assert (found != torch.arange(20)[:, None]).all()
    assert torch.equal(found // 4, (torch.arange(20) // 4)[:, None].expand(-1, 3))


def test_features_that_are_all_equal_still_have_neighbours():
    found = nearest_neighbours(torch.ones(6, 3), 2)
    assert (found != torch.arange(6)[:, None]).all()


def chance(triple, matrix, prior):
    return sum(p * math.prod(row[y] for y in triple) for p, row in zip(prior, matrix, strict=True))


MATRIX = [[0.7, 0.2, 0.1], [0.1, 0.9, 0.0], [0.2, 0.2, 0.6]]
PRIOR = [0.5, 0.3, 0.2]


def exact_triples(matrix, prior):
    """10 000 triples in exactly the proportions of the model: all chances are multiples of 1e-4."""
    k = len(prior)
    rows = []
    for triple in itertools.product(range(k), repeat=3):
        count = 10_000 * chance(triple, matrix, prior)
        assert count == pytest.approx(round(count), abs=1e-6)
        rows += [triple] * round(count)
    assert len(rows) == 10_000
    return torch.tensor(rows)


@pytest.mark.parametrize(
    ("matrix", "prior"), [([[0.9, 0.1], [0.3, 0.7]], [0.4, 0.6]), (MATRIX, PRIOR)], ids=["two", "three"]
)
def test_the_matrix_is_recovered_from_the_exact_distribution(matrix, prior):
    solution = HighOrderConsensus().solve((exact_triples(matrix, prior),), len(prior))
    torch.testing.assert_close(solution.matrix, torch.tensor(matrix).double(), atol=3e-3, rtol=0)
    torch.testing.assert_close(solution.prior, torch.tensor(prior).double(), atol=3e-3, rtol=0)


def naive_step(matrix, prior, triples, weight):
    k = len(prior)
    moved, mass, fit = [[0.0] * k for _ in range(k)], [0.0] * k, 0.0
    for triple, w in zip(triples, weight, strict=True):
        total = chance(triple, matrix, prior)
        fit += w * math.log(total)
        for a in range(k):
            responsible = w * prior[a] * math.prod(matrix[a][y] for y in triple) / total
            mass[a] += responsible
            for y in triple:
                moved[a][y] += responsible
    return [[m / sum(row) for m in row] for row in moved], mass, fit


@pytest.mark.parametrize("elements", [2**22, 1, 20])
def test_a_step_is_that_of_plain_loops_in_chunks_of_any_size(monkeypatch, elements):
    monkeypatch.setattr(hoc, "_CHUNK_ELEMENTS", elements)
    generator = torch.Generator().manual_seed(0)
    triples = torch.randint(4, (30, 3), generator=generator)
    weight = torch.rand(30, generator=generator, dtype=torch.float64)
    weight /= weight.sum()
    matrix = torch.rand(4, 4, generator=generator, dtype=torch.float64).softmax(1)
    prior = torch.rand(4, generator=generator, dtype=torch.float64).softmax(0)
    found = hoc._step(matrix, prior, triples, weight)
    expected = naive_step(matrix.tolist(), prior.tolist(), triples.tolist(), weight.tolist())
    torch.testing.assert_close(found[0], torch.tensor(expected[0], dtype=torch.float64))
    torch.testing.assert_close(found[1], torch.tensor(expected[1], dtype=torch.float64))
    assert found[2] == pytest.approx(expected[2])


def test_the_likelihood_never_falls():
    triples, weight = exact_triples(MATRIX, PRIOR).unique(dim=0, return_counts=True)
    weight = weight / weight.sum().double()
    matrix = torch.full((3, 3), 0.2).double() + 0.4 * torch.eye(3).double()
    prior, fits = torch.full((3,), 1 / 3).double(), []
    for _ in range(60):
        matrix, prior, fit = hoc._step(matrix, prior, triples, weight)
        fits.append(fit)
    assert fits == sorted(fits)
    assert fits[-1] > fits[0] + 0.01


def clustered(n, seed=0):
    """Rows so close to the centre of their class that neighbours share it."""
    generator = torch.Generator().manual_seed(seed)
    true = torch.randint(3, (n,), generator=generator)
    features = torch.eye(3)[true] + 0.01 * torch.randn(n, 3, generator=generator)
    labels = torch.multinomial(MATRICES[3].matrix[true], 1, generator=generator).flatten()
    return features, true, labels


def test_clusters_give_the_matrix():
    features, true, labels = clustered(6000)
    assert (true[nearest_neighbours(features, 2)] == true[:, None]).all()
    estimate = estimate_transition(labels=labels, features=features, method="hoc", replicates=5)
    torch.testing.assert_close(estimate.matrix, MATRICES[3].matrix, atol=0.03, rtol=0)


def test_the_rows_are_the_labels_of_a_row_and_its_neighbours():
    features, _, labels = clustered(30)
    (triples,) = HighOrderConsensus().rows(gather_evidence(None, labels, features, None, 0))
    near = nearest_neighbours(features, 2)
    assert triples.tolist() == [[labels[i], labels[near[i, 0]], labels[near[i, 1]]] for i in range(30)]


def test_two_rows_are_too_few():
    with pytest.raises(InputError, match="HOC compares a row with two neighbours; there are 2 rows"):
        estimate_transition(labels=[0, 1], features=[[0.0], [1.0]], method="hoc")
