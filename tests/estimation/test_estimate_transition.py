"""The whole way from labels to an estimate, for every method."""

import subprocess
import sys

import pytest
import torch
from synthetic import MATRICES, Problem, problem

import postmax
from postmax import estimate_transition, estimation
from postmax.estimation import AnchorPoints, PosteriorLikelihood, likelihood, network, unmix
from postmax.estimation.estimator import Solution
from postmax.estimation.identify import unidentified

FROM_FEATURES = tuple(name for name in estimation.names() if estimation.needs_features(estimation.get(name)))
FROM_PROBABILITIES = tuple(name for name in estimation.names() if name not in FROM_FEATURES)
DATA = problem(MATRICES[3], 400, separation=5)


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    monkeypatch.setattr(network, "_MIN_STEPS", 120)


def run(method, data: Problem = DATA, labels=None, **options):
    labels = data.labels if labels is None else labels
    options = {"replicates": 6, **options}
    if method in FROM_FEATURES:
        return estimate_transition(labels=labels, features=data.features, method=method, **options)
    return estimate_transition(data.probabilities, labels, method=method, **options)


def assert_sound(estimate, k):
    assert estimate.matrix.shape == (k, k)
    assert (estimate.matrix >= 0).all()
    torch.testing.assert_close(estimate.matrix.sum(1), torch.ones(k, dtype=torch.float64))
    assert estimate.prior.sum().item() == pytest.approx(1)
    assert (estimate.prior >= 0).all()
    assert estimate.noise_rate == pytest.approx(estimate.transition.noise_rate(estimate.prior), abs=1e-9)
    low, high = estimate.interval
    assert low.isfinite().all()
    assert high.isfinite().all()
    assert ((low <= high) & (low >= 0) & (high <= 1 + 1e-12)).all()
    (bottom, top), (lower, upper) = estimate.noise_rate_interval, estimate.sampling_interval
    assert 0 <= bottom <= lower <= upper <= top <= 1
    assert estimate.condition_number == pytest.approx(float(torch.linalg.cond(estimate.matrix)))


@pytest.mark.parametrize("method", estimation.names())
def test_every_estimate_is_sound(method):
    estimate = run(method)
    assert_sound(estimate, 3)
    assert estimate.method == method
    assert estimate.rows == 400
    assert estimate.classes == (0, 1, 2)
    assert f"{method}, K=3, noise rate" in repr(estimate)


@pytest.mark.parametrize("method", [name for name in estimation.names() if name != "dual-t"])
def test_every_method_but_dual_t_comes_near_an_easy_truth(method):
    """Dual-T passes the noise twice when the probabilities are the exact posterior of the noisy label: T♣ = T♠ = T."""
    data = problem(MATRICES[3], 1000, separation=8)
    assert (run(method, data).matrix - data.matrix).abs().max() < 0.12


def test_dual_t_gives_the_square_of_the_matrix_on_an_exact_posterior():
    data = problem(MATRICES[3], 3000, separation=8)
    torch.testing.assert_close(run("dual-t", data).matrix, data.matrix @ data.matrix, atol=0.04, rtol=0)


@pytest.mark.parametrize("method", estimation.names())
def test_the_same_seed_gives_the_same_estimate(method):
    torch.manual_seed(1)
    first = run(method, seed=3)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    second = run(method, seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    assert first.to_dict() == second.to_dict()


def test_another_seed_gives_another_interval():
    first, second = (run("confident-joint", seed=seed) for seed in (0, 1))
    assert torch.equal(first.matrix, second.matrix)
    assert first.sampling_interval != second.sampling_interval


@pytest.mark.parametrize("method", FROM_PROBABILITIES)
def test_other_names_for_the_classes_permute_the_matrix(method):
    order = torch.tensor([2, 0, 1])  # class i is called order[i] now
    names = ("ant", "bee", "cat")
    renamed = [names[order[y]] for y in DATA.labels]
    usual = run(method, replicates=2)
    other = estimate_transition(DATA.probabilities[:, order.argsort()], renamed, method=method, replicates=2)
    assert other.classes == names
    torch.testing.assert_close(other.matrix[order][:, order], usual.matrix, atol=1e-3, rtol=0)
    torch.testing.assert_close(other.prior[order], usual.prior, atol=1e-3, rtol=0)
    assert other.noise_rate == pytest.approx(usual.noise_rate, abs=1e-3)


def test_the_interval_of_fpml_holds_its_estimate():
    estimates = [run("fpml", problem(MATRICES[3], 200, seed=seed, separation=5), replicates=20) for seed in range(4)]
    inside = [e.sampling_interval[0] <= e.noise_rate <= e.sampling_interval[1] for e in estimates]
    assert sum(inside) >= 3


def test_a_wider_level_gives_a_wider_interval():
    narrow, wide = (run("confident-joint", replicates=50, level=level) for level in (0.5, 0.99))
    assert wide.level == 0.99
    assert (wide.interval[0] <= narrow.interval[0]).all()
    assert (wide.interval[1] >= narrow.interval[1]).all()
    assert (wide.interval[1] - wide.interval[0]).sum() > (narrow.interval[1] - narrow.interval[0]).sum()


def absent_class():
    """Two classes in the columns 0 and 2 of three."""
    data = problem(MATRICES[2], 300, separation=5)
    probabilities = torch.zeros(300, 3, dtype=torch.float64)
    probabilities[:, ::2] = data.probabilities
    return data._replace(probabilities=0.999 * probabilities + 0.001 / 3, labels=2 * data.labels)


@pytest.mark.parametrize("method", estimation.names())
def test_a_class_that_never_occurs_keeps_its_label_and_is_reported(method):
    estimate = run(method, absent_class(), num_classes=3)
    assert_sound(estimate, 3)
    assert estimate.matrix[1].tolist() == [0, 1, 0]
    assert estimate.prior[1] < 0.02
    assert estimate.unidentified[1] == "no row has this label"
    assert estimate.classes == (0, 1, 2)


@pytest.mark.parametrize("method", ["anchor", "anchor-97", "confident-joint", "fpml", "fpml-class", "hoc"])
def test_a_class_that_never_occurs_does_not_change_the_noise_rate(method):
    data = problem(MATRICES[2], 300, separation=5)
    assert run(method, absent_class(), num_classes=3).noise_rate == pytest.approx(
        run(method, data).noise_rate, abs=0.04
    )


def test_a_class_that_is_labelled_as_another_is_reported():
    p = torch.tensor([[0.4, 0.6], [0.1, 0.9]]).repeat(40, 1)
    labels = torch.tensor([0, 1, 1, 1, 1]).repeat(16)
    estimate = estimate_transition(p, labels, method="anchor", replicates=5)
    assert estimate.matrix[0].tolist() == pytest.approx([0.4, 0.6])
    assert estimate.unidentified == {
        0: "it seems to be labelled 1 more often (60%) than itself (40%); the two may be swapped"
    }


def test_each_reason_has_its_place():
    matrix = torch.tensor([[0.3, 0.7, 0, 0, 0], [0.2, 0.8, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]])
    prior = torch.tensor([0.4, 0.4, 0.05, 0.0, 0.15])
    lower, upper = torch.zeros(5, 5), torch.zeros(5, 5)
    lower[4, 4], upper[4, 4] = 0.25, 0.8
    labels = torch.tensor([0] * 30 + [1] * 40 + [2] * 10 + [4] * 20)
    assert unidentified(Solution(matrix, prior), (lower, upper), labels, ("a", "b", "c", "d", "e")) == {
        "a": "it seems to be labelled 'b' more often (70%) than itself (30%); the two may be swapped",
        "c": "only about 5 rows are of this class",
        "d": "no row has this label",
        "e": "the share of its labels that are right may be anything from 25% to 80%",
    }


def test_a_class_with_few_rows_is_reported():
    data = problem(MATRICES[3], 400, prior=[0.59, 0.4, 0.01], separation=6)
    estimate = run("fpml", data)
    assert "rows are of this class" in estimate.unidentified[2]
    assert 0 not in estimate.unidentified


@pytest.mark.parametrize("method", ["fpml", "fpml-class", "confident-joint", "anchor", "hoc"])
def test_imbalanced_classes(method):
    data = problem(MATRICES[3], 1500, prior=[0.7, 0.2, 0.1], separation=7)
    estimate = run(method, data)
    truth = float((torch.tensor([0.7, 0.2, 0.1]) * (1 - data.matrix.diagonal())).sum())
    assert estimate.noise_rate == pytest.approx(truth, abs=0.04)
    torch.testing.assert_close(estimate.prior, torch.tensor([0.7, 0.2, 0.1]).double(), atol=0.06, rtol=0)


@pytest.mark.parametrize("method", FROM_PROBABILITIES)
@pytest.mark.parametrize(("n", "k"), [(2, 2), (4, 3), (11, 10)])
def test_hardly_more_rows_than_classes(method, n, k):
    data = problem(MATRICES[k], n, separation=4)
    labels = torch.arange(n) % k
    estimate = run(method, data, labels=labels, replicates=3)
    assert_sound(estimate, k)
    assert len(estimate.unidentified) == k


@pytest.mark.parametrize("method", FROM_PROBABILITIES)
def test_hard_predictions_that_miss_a_class(method):
    """Certain and always class 0: some draws then hold only labels that the matrix rules out."""
    p = torch.tensor([[1.0, 0.0]] * 6)
    assert_sound(estimate_transition(p, [0, 1, 1, 1, 1, 1], method=method, replicates=20), 2)


@pytest.mark.parametrize("method", FROM_FEATURES)
def test_features_that_are_all_alike(method):
    assert_sound(estimate_transition(labels=[0, 1] * 10, features=torch.ones(20, 2), method=method, replicates=3), 2)


@pytest.mark.parametrize("method", ["fpml", "anchor", "confident-joint"])
def test_features_alone_are_enough(method):
    data = problem(MATRICES[2], 600, separation=6)
    estimate = estimate_transition(labels=data.labels, features=data.features, method=method, replicates=3)
    assert_sound(estimate, 2)
    assert (estimate.matrix - data.matrix).abs().max() < 0.15


def thousand_classes():
    k, n = 1000, 1500
    true = torch.arange(n) % k
    generator = torch.Generator().manual_seed(0)
    wrong = torch.rand(n, generator=generator) < 0.2
    labels = torch.where(wrong, torch.randint(k, (n,), generator=generator), true)
    probabilities = torch.full((n, k), 0.3 / k, dtype=torch.float64)
    probabilities[torch.arange(n), true] += 0.7
    centres = torch.randn(k, 16, generator=generator)
    features = centres[true] + 0.01 * torch.randn(n, 16, generator=generator)
    return Problem(features, true, probabilities, labels, probabilities, torch.eye(k))


@pytest.mark.parametrize(
    "method",
    [
        # These two take half a minute each.
        pytest.param(name, marks=pytest.mark.slow) if name in ("cycle", "tv") else name
        for name in estimation.names()
        if name not in ("volmin", "fpml-class")
    ],
)
@pytest.mark.thorough
def test_a_thousand_classes(monkeypatch, method):
    """Whether it works at all; the iterations of ours would take most of a minute."""
    monkeypatch.setattr(likelihood, "_STEPS", 2)
    monkeypatch.setattr(likelihood, "_WARM_STEPS", 2)
    monkeypatch.setattr(unmix, "_FEWEST_STEPS", 3)
    monkeypatch.setattr(unmix, "_MOST_STEPS", 3)
    estimate = run(method, thousand_classes(), num_classes=1000, replicates=2)
    assert_sound(estimate, 1000)
    if method in ("anchor", "confident-joint"):
        assert estimate.noise_rate == pytest.approx(0.2, abs=0.15)


def test_a_configured_method_goes_by_the_name_of_its_class():
    estimate = run(AnchorPoints(percentile=90))
    assert estimate.method == "AnchorPoints"
    assert torch.equal(run(PosteriorLikelihood(class_conditional=True)).matrix, run("fpml-class").matrix)


@pytest.mark.parametrize(
    ("alias", "name"), [("Anchor Points", "anchor"), ("dual_t", "dual-t"), ("FPML-class-conditional", "fpml-class")]
)
def test_methods_have_aliases(alias, name):
    assert torch.equal(run(alias).matrix, run(name).matrix)


def test_the_default_is_ours():
    assert estimation.DEFAULT == "fpml"
    assert estimation.names()[0] == "fpml"
    assert len(set(estimation.names())) == len(estimation.names()) >= 8


def test_importing_postmax_loads_nothing_but_torch_and_numpy():
    optional = ["pyarrow", "PIL", "sklearn", "scipy", "matplotlib", "typer", "rich", "pandas"]
    # torch itself loads some of these where it finds them.
    code = "import sys, torch; before = set(sys.modules); import postmax; after = set(sys.modules) - before; "
    code += f"print(after & set({optional}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
    assert postmax.estimate_transition is estimate_transition
