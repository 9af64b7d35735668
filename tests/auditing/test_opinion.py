"""Probabilities of any model, against the posterior that they were made from and against a calculation by hand."""

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

import postmax as pm
from postmax.auditing.calibrated import calibrated
from postmax.auditing.known_posterior import KnownPosterior
from postmax.errors import InputError
from postmax.estimation.evidence import gather_evidence

NOISE = pm.Transition([[0.8, 0.2, 0.0], [0.0, 1.0, 0.0], [0.1, 0.3, 0.6]])


def drawn(noise, count, seed, spread=0.25):
    """Posteriors of the true class, true classes drawn from them, and labels."""
    generator = np.random.default_rng(seed)
    posterior = generator.dirichlet([spread] * noise.num_classes, count)
    truth = (generator.random(count)[:, None] > posterior.cumsum(1)).sum(1).clip(max=noise.num_classes - 1)
    return posterior, truth, noise.corrupt(torch.from_numpy(truth), seed=seed + 1000).labels.numpy()


def test_the_noise_behind_a_known_posterior_is_found():
    posterior, _, labels = drawn(NOISE, 20_000, 0)
    rows = torch.from_numpy(posterior), torch.from_numpy(labels)
    found = KnownPosterior().solve(rows, 3)
    np.testing.assert_allclose(found.matrix, NOISE.matrix, atol=0.03)

    def likelihood(matrix):
        return float((rows[0] * matrix.T[rows[1]]).sum(1).log().sum())

    best = likelihood(found.matrix)
    for seed in range(20):  # no other matrix explains the labels better
        step = torch.rand(3, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        other = 0.97 * found.matrix + 0.03 * step / step.sum(1, keepdim=True)
        assert likelihood(other) < best


def test_probabilities_of_the_true_class_are_judged_by_bayes_rule():
    posterior, _, labels = drawn(NOISE, 300, 1)
    found = pm.audit(probabilities=posterior, labels=labels, of="class")
    matrix = KnownPosterior().solve(KnownPosterior().rows(gather_evidence(posterior, labels, None, None, 0)), 3).matrix
    for row in range(40):
        joint = [posterior[row, i] * float(matrix[i, labels[row]]) for i in range(3)]
        assert found.table["p_wrong"][row] == pytest.approx(1 - joint[labels[row]] / sum(joint), abs=1e-4)
        assert found.table["suggested"][row] == np.argmax(joint)
        assert found.table["given"][row] == labels[row]
    assert found.interval[0] <= found.noise_rate <= found.interval[1]


def test_calibration_undoes_a_model_that_is_too_sure_or_too_unsure():
    posterior, _, labels = drawn(NOISE, 20_000, 2)
    labels, right = torch.from_numpy(labels), torch.from_numpy(posterior.clip(1e-12))
    for power in (0.4, 2.5):
        wrong = (power * right.log()).softmax(1)
        found = calibrated(wrong, labels, NOISE.matrix)
        assert (found - right).abs().mean() < 0.02 < 0.05 < (wrong - right).abs().mean()


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_number_that_is_expected_is_nearly_the_number_that_is_wrong(power):
    """Within 5 in a hundred on average over seeds, also for a model that is too sure of itself."""
    errors, precision = [], []
    for seed in range(3):
        noise = pm.Transition.symmetric(4, 0.25)
        posterior, truth, labels = drawn(noise, 1000, seed, spread=0.06)
        shown = (posterior @ noise.matrix.numpy()) ** power
        found = pm.audit(probabilities=shown / shown.sum(1, keepdims=True), labels=labels)
        wrong = labels != truth
        errors.append((found.issues.expected_wrong - wrong[found.issues.table["row"]].sum()) * 100 / wrong.sum())
        precision.append(average_precision_score(wrong, found.table["p_wrong"]))
        best = (posterior * noise.matrix.numpy().T[labels]).argmax(1)  # what is best if everything is known
        right = (found.table["suggested"] == truth)[wrong].mean()
        assert right > (best == truth)[wrong].mean() - 0.08
    assert abs(np.mean(errors)) < 5
    assert np.mean(precision) > 0.9


def test_noise_in_one_direction_is_found_better_than_by_the_probability_of_the_label():
    noise = pm.Transition.pair(3, 0.35)
    posterior, truth, labels = drawn(noise, 1500, 7, spread=0.03)
    shown = posterior @ noise.matrix.numpy()
    found = pm.audit(probabilities=shown, labels=labels)
    wrong = labels != truth
    ours = average_precision_score(wrong, found.table["p_wrong"])
    plain = average_precision_score(wrong, 1 - shown[np.arange(len(labels)), labels])
    assert ours > plain + 0.1


def test_clean_labels_are_not_accused():
    posterior, _, labels = drawn(pm.Transition.identity(3), 1500, 3, spread=0.1)
    found = pm.audit(probabilities=posterior, labels=labels)
    assert found.interval[0] == 0
    assert found.table["p_wrong"].mean() < 0.03


def test_what_does_not_fit_is_refused():
    posterior, _, labels = drawn(NOISE, 50, 4)
    with pytest.raises(InputError, match="of is 'label'"):
        pm.audit(probabilities=posterior, labels=labels, of="row")
    with pytest.raises(InputError, match="50 rows of probabilities but 49 labels"):
        pm.audit(probabilities=posterior, labels=labels[1:])
    with pytest.raises(InputError, match="needs rows or probabilities"):
        pm.audit(labels=labels)
    with pytest.raises(InputError, match="is for given probabilities"):
        pm.audit(posterior, labels, of="class")
    with pytest.raises(InputError, match="postmax audit"):
        pm.audit("table.csv", labels)
    with pytest.raises(InputError, match="not fitted"):
        pm.audit(pm.FPMLClassifier())
