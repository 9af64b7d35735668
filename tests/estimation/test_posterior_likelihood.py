"""Our estimator: its gradient, what it recovers, and what it refuses to claim."""

import math

import pytest
import torch
from synthetic import MATRICES, problem, random_probabilities

from postmax import Transition, estimate_transition
from postmax.estimation import likelihood, network
from postmax.estimation.confident import ConfidentJoint
from postmax.estimation.evidence import gather_evidence
from postmax.estimation.likelihood import PosteriorLikelihood, clean_posterior, fit
from postmax.estimation.similarity import share_that_follows_similarity


def negative_log_likelihood(scores, labels, log_a, bias, log_t):
    """The same function for autograd, with the priors of log a (normal around 1) and of T (0.1 labels a row)."""
    n, k = scores.shape
    mixed = (log_a.exp() * scores + bias).softmax(1) @ log_t.softmax(1)
    value = -mixed[torch.arange(n), labels].log().sum()
    return (value + (log_a - 1) ** 2 / 2 - 0.1 / k * log_t.softmax(1).log().sum()) / n


def random_start(k, seed=5):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((), (k,), (k, k))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("elements", [2**22, 1, 40])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_value_and_gradient_are_those_of_autograd(monkeypatch, k, elements):
    monkeypatch.setattr(likelihood, "_CHUNK_ELEMENTS", elements)
    scores = random_probabilities(23, k).log()
    labels = torch.randint(k, (23,), generator=torch.Generator().manual_seed(0))
    parameters = random_start(k)
    expected = negative_log_likelihood(scores, labels, *parameters)
    gradients = torch.autograd.grad(expected, parameters)
    with torch.no_grad():
        value, found, _ = likelihood._negative_log_likelihood(scores, labels, *parameters)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=0)
    for mine, reference in zip(found, gradients, strict=True):
        torch.testing.assert_close(mine, reference, rtol=1e-10, atol=1e-13)


def test_the_prior_is_the_mean_posterior_of_the_true_class_given_scores_and_label():
    scores = random_probabilities(12, 3).log()
    labels = torch.arange(12) % 3
    log_a, bias, log_t = (part.detach() for part in random_start(3))
    _, _, prior = likelihood._negative_log_likelihood(scores, labels, log_a, bias, log_t)
    total, t = [0.0] * 3, log_t.softmax(1).tolist()
    for row, y in zip(scores.tolist(), labels.tolist(), strict=True):
        joint = [
            math.exp(math.exp(log_a) * s + b) * t[i][y] for i, (s, b) in enumerate(zip(row, bias.tolist(), strict=True))
        ]
        total = [old + j / sum(joint) / 12 for old, j in zip(total, joint, strict=True)]
    assert prior.tolist() == pytest.approx(total)


def test_the_fit_ends_where_the_gradient_vanishes():
    data = problem(MATRICES[3], 800, separation=3)
    state = [part.requires_grad_() for part in fit(data.clean.log(), data.labels).state]
    gradients = torch.autograd.grad(negative_log_likelihood(data.clean.log(), data.labels, *state), state)
    assert max(float(g.abs().max()) for g in gradients) < 1e-3


@pytest.mark.parametrize(("k", "n"), [(2, 3000), (3, 4000), (10, 6000)])
def test_the_matrix_is_recovered_from_the_scores_of_the_true_class(k, n):
    """Within a few standard errors of counting the labels of known true classes, which clear classes come near."""
    data = problem(MATRICES[k], n, separation=6)
    found = fit(data.clean.log(), data.labels)
    error = (data.matrix * (1 - data.matrix) / (n / k)).sqrt()
    assert ((found.matrix - data.matrix).abs() <= 4 * error + 2e-3).all()
    torch.testing.assert_close(found.prior, torch.full((k,), 1 / k).double(), atol=4 * math.sqrt(1 / k / n), rtol=0)


def test_temperature_and_biases_of_the_scores_do_not_matter():
    data = problem(MATRICES[3], 2000, separation=4)
    plain = fit(data.clean.log(), data.labels)
    bent = fit(0.5 * data.clean.log() + torch.tensor([1.0, -1.0, 0.3]).double(), data.labels)
    torch.testing.assert_close(bent.matrix, plain.matrix, atol=5e-3, rtol=0)
    torch.testing.assert_close(bent.prior, plain.prior, atol=5e-3, rtol=0)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_an_exact_noisy_posterior_with_its_plateaus_is_read_as_noise(k):
    """Clear rows all have a row of T as their posterior, which looks like ambiguity unless it is unmixed."""
    data = problem(MATRICES[k], 600 * k, separation=8)
    estimate = estimate_transition(data.probabilities, data.labels, method="fpml-class", replicates=2)
    error = (data.matrix * (1 - data.matrix) / 600).sqrt()
    assert ((estimate.matrix - data.matrix).abs() <= 4 * error + 0.01).all()


@pytest.mark.parametrize("method", ["fpml", "fpml-class"])
def test_clean_labels_have_no_noise(method):
    data = problem(Transition.identity(3), 2000, separation=5)
    estimate = estimate_transition(data.probabilities, data.labels, method=method, replicates=5)
    assert estimate.noise_rate < 0.005
    assert estimate.sampling_interval[0] < 0.005


def test_ambiguous_rows_of_clean_labels_are_no_noise_to_the_likelihood_but_bound_it_from_above():
    data = problem(Transition.identity(2), 3000, separation=1.5)
    ambiguous = float((data.clean.argmax(1) != data.labels).double().mean())
    estimate = estimate_transition(data.clean, data.labels, method="fpml-class", replicates=10)
    assert ambiguous > 0.1
    assert estimate.noise_rate < 0.05
    low, high = estimate.noise_rate_interval
    assert low <= estimate.sampling_interval[0] <= estimate.sampling_interval[1] <= high
    assert high >= ambiguous - 0.02


def test_bounds_are_the_noise_rate_and_the_share_of_labels_that_are_not_the_most_probable_class():
    data = problem(MATRICES[3], 500, separation=2)
    rows = (data.clean.log(), data.labels)
    solution = PosteriorLikelihood(class_conditional=True).solve(rows, 3)
    log_a, bias, _ = solution.state
    clean = torch.softmax(log_a.exp() * rows[0] + bias, 1)
    wrong = sum(row.index(max(row)) != y for row, y in zip(clean.tolist(), data.labels.tolist(), strict=True))
    assert solution.bounds == pytest.approx((solution.noise_rate, wrong / 500))


def look_alikes(n):
    """Six classes in look-alike pairs, and labels that are wrong where the posterior is in doubt."""
    generator = torch.Generator().manual_seed(0)
    pair, side = torch.randint(3, (n,), generator=generator), torch.randint(2, (n,), generator=generator)
    x = (2 * side - 1) * 1.2 + torch.randn(n, generator=generator, dtype=torch.float64)
    clean = torch.full((n, 6), 1e-3, dtype=torch.float64)
    within = torch.sigmoid(2.4 * x)
    clean[torch.arange(n), 2 * pair] += 1 - within
    clean[torch.arange(n), 2 * pair + 1] += within
    labels = 2 * pair + torch.where(torch.rand(n, generator=generator) < 0.2, 1 - side, side)
    return clean / clean.sum(1, keepdim=True), labels


def test_the_default_mixes_in_the_confident_joint_as_far_as_noise_follows_similarity():
    clean, labels = look_alikes(3000)
    rows = (clean.log(), labels)
    alone = PosteriorLikelihood(class_conditional=True).solve(rows, 6)
    mixed = PosteriorLikelihood().solve(rows, 6)
    posterior = clean_posterior(rows[0], alone.state)
    share = share_that_follows_similarity(alone.matrix, posterior)
    assert share > 0.5
    counted = ConfidentJoint().solve((posterior @ alone.matrix, labels), 6)
    for i in range(6):
        prior = (1 - share) * alone.prior[i] + share * counted.prior[i]
        joint = (1 - share) * alone.prior[i] * alone.matrix[i] + share * counted.prior[i] * counted.matrix[i]
        torch.testing.assert_close(mixed.matrix[i], joint / prior)
        torch.testing.assert_close(mixed.prior[i], prior)


def test_for_two_classes_the_default_is_the_likelihood_alone():
    data = problem(MATRICES[2], 500, separation=3)
    rows = (data.clean.log(), data.labels)
    one, other = (PosteriorLikelihood(c).solve(rows, 2) for c in (False, True))
    torch.testing.assert_close(one.matrix, other.matrix)


def test_a_fit_that_starts_at_the_solution_stays_there():
    data = problem(MATRICES[3], 800, separation=4)
    rows = (data.clean.log(), data.labels)
    method = PosteriorLikelihood(class_conditional=True)
    first = method.solve(rows, 3)
    before = [part.clone() for part in first.state]
    again = method.solve(rows, 3, first)
    torch.testing.assert_close(again.matrix, first.matrix, atol=2e-3, rtol=0)
    assert all(torch.equal(a, b) for a, b in zip(before, first.state, strict=True))


def test_features_that_say_nothing_give_an_answer_without_confidence(monkeypatch):
    """The first matrix may then be one that no correction undoes."""
    monkeypatch.setattr(network, "_MIN_STEPS", 30)
    monkeypatch.setattr(network, "_EPOCHS", 2)
    labels = torch.arange(40) % 2
    estimate = estimate_transition(labels=labels, features=torch.zeros(40, 2), replicates=5)
    assert estimate.matrix.isfinite().all()
    assert estimate.noise_rate_interval[1] >= 0.4


def test_with_features_the_scores_are_those_of_a_forward_corrected_network(monkeypatch):
    monkeypatch.setattr(network, "_MIN_STEPS", 250)
    data = problem(MATRICES[3], 1200, separation=6)
    scores, labels = PosteriorLikelihood().rows(gather_evidence(None, data.labels, data.features, None, 0))
    assert torch.equal(labels, data.labels)
    clear = data.clean.max(1).values > 0.999
    # A posterior of the noisy label would level off at the diagonal of T, 0.9 and less.
    assert scores[clear].max(1).values.exp().median() > 0.93


@pytest.mark.parametrize("transition", [Transition.identity(3), Transition.symmetric(3, 0.2)])
def test_calibrated_probabilities_can_always_be_explained_without_noise(transition):
    """A posterior that is right about the labels fits them with T = I, whatever noise they have."""
    data = problem(transition, 1500, separation=1)
    low, high = estimate_transition(data.probabilities, data.labels, replicates=5).noise_rate_interval
    assert low == 0
    assert high >= transition.noise_rate()


def test_saturated_scores_are_read_as_clear_rows():
    """Nearly separable classes: few distinct scores, which soft posteriors without noise would explain as well."""
    for seed in range(3):
        data = problem(MATRICES[3], 1500, separation=6, seed=seed)
        found = estimate_transition(data.probabilities, data.labels, replicates=2)
        realised = float((data.labels != data.true).double().mean())
        assert found.noise_rate == pytest.approx(realised, abs=0.01)


def test_scores_that_do_not_level_off_need_the_noise():
    """Scores of the true class under noisy labels: no temperature gives the floors that noise puts under labels."""
    data = problem(MATRICES[3], 1500, separation=4)
    method = PosteriorLikelihood(class_conditional=True)
    solution = method.solve((data.clean.log(), data.labels), 3)
    assert solution.bounds[0] == solution.noise_rate > 0.1
