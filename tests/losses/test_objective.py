"""Corrections together with label smoothing and class weights: what the fitted posterior then means."""

from itertools import product

import numpy as np
import pytest
import torch
from finite_problem import joint_minimiser, minimiser
from loss_tester import value_and_gradient
from torch.testing import assert_close

import postmax as pm
from postmax.errors import PostmaxWarning

NOISE = pm.Transition.binary(0.1, 0.3)
THREE = pm.Transition([[0.6, 0.25, 0.15], [0.1, 0.8, 0.1], [0.2, 0.05, 0.75]])
CLEAN = torch.tensor([0.7, 0.3], dtype=torch.float64)
NOISY = NOISE.corrupt_posterior(CLEAN)


def fitted(loss):
    """The posterior after minimising the exact expectation over hard noisy labels."""

    def expected(z):
        return sum(NOISY[label] * loss(z, torch.tensor(label)) for label in range(2))

    solve = joint_minimiser if loss.objective.link.normalised else minimiser
    return loss.posterior(solve(expected, (2,)))


@pytest.mark.parametrize("correction", ["objective", "posterior", "forward", "factored"])
@pytest.mark.parametrize("name", ["kl", "gan", "neyman"])
def test_label_smoothing_smooths_the_true_classes(name, correction):
    loss = pm.FPMLLoss(name, transition=NOISE, correction=correction, label_smoothing=0.2)
    assert_close(fitted(loss), 0.8 * CLEAN + 0.2 / 2, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["kl", "gan", "neyman"])
def test_class_weights_count_true_classes_under_the_objective_correction(name):
    weight = torch.tensor([1.0, 4.0], dtype=torch.float64)
    loss = pm.FPMLLoss(name, transition=NOISE, correction="objective", floor=0, weight=weight, reduction="sum")
    assert_close(fitted(loss), weight * CLEAN / (weight * CLEAN).sum(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("correction", ["posterior", "forward", "factored"])
def test_class_weights_are_refused_where_they_would_count_noisy_labels(correction):
    with pytest.raises(pm.InputError, match="class weights cannot be combined"):
        pm.FPMLLoss("gan", transition=NOISE, correction=correction, weight=torch.ones(2))
    with pytest.raises(pm.InputError, match="objective"):
        pm.functional.fpml_loss(
            torch.zeros(1, 2), torch.tensor([0]), transition=NOISE, correction=correction, weight=torch.ones(2)
        )


@pytest.mark.parametrize("name", ["kl", "gan", "sl:0.5", "pearson"])
def test_the_default_floor_of_the_factored_correction_is_within_reach_of_every_class(name):
    # Confusions send no more than an eighth of any class to class 0; a floor of 0.4/3 would ask for all of it.
    noise = pm.Transition([[0.503, 0.418, 0.079], [0.432, 0.568, 0.0], [0.447, 0.003, 0.55]])
    clean = torch.tensor([0.025, 0.843, 0.132], dtype=torch.float64)
    noisy = noise.corrupt_posterior(clean)
    loss = pm.FPMLLoss(name, transition=noise, correction="factored")

    def expected(z):
        return sum(noisy[label] * loss(z, torch.tensor(label)) for label in range(3))

    assert loss.objective.floor < 0.02
    assert_close(loss.posterior(joint_minimiser(expected, (3,))), clean, rtol=0, atol=0.1)


def test_label_smoothing_smooths_the_true_classes_under_both_factors():
    clean = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    noisy = THREE.corrupt_posterior(clean)
    loss = pm.FPMLLoss("gan", transition=THREE, correction="factored", label_smoothing=0.2, floor=0)

    def expected(z):
        return sum(noisy[label] * loss(z, torch.tensor(label)) for label in range(3))

    assert_close(loss.posterior(joint_minimiser(expected, (3,))), 0.8 * clean + 0.2 / 3, rtol=0, atol=1e-6)


PAIR = pm.Transition.pair(3, 0.3)  # its objective correction may weigh the masked class, where the loss is infinite
RANDOM = pm.Transition.symmetric(3, 0.4)


@pytest.mark.parametrize(
    ("noise", "correction"),
    [(PAIR, "forward"), (PAIR, "factored"), *product([RANDOM, THREE], ["objective", "forward", "factored"])],
)
def test_masked_classes_have_no_gradient(noise, correction):
    logits = torch.tensor([[-torch.inf, 0.0, 0.3]], requires_grad=True)
    loss = pm.FPMLLoss("gan", "softmax", transition=noise, correction=correction)(logits, torch.tensor([1]))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.isfinite()
    assert gradient.isfinite().all()
    assert gradient[0, 0] == 0


@pytest.mark.parametrize("name", ["kl", "gan", "sl:0.5", "pearson"])
def test_the_factored_correction_finds_the_clean_posterior(name):
    clean = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    noisy = THREE.corrupt_posterior(clean)
    loss = pm.FPMLLoss(name, transition=THREE, correction="factored", floor=0)

    def expected(z):
        return sum(noisy[label] * loss(z, torch.tensor(label)) for label in range(3))

    assert_close(loss.posterior(joint_minimiser(expected, (3,))), clean, rtol=0, atol=1e-6)


def test_the_factored_correction_is_the_others_where_one_factor_is_no_noise():
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    labels = torch.arange(6) % 3
    confusions, random = THREE.factors
    for noise, other in ((random, "objective"), (confusions, "forward")):
        losses = [
            pm.FPMLLoss("gan", "softmax", transition=noise, correction=correction)(logits, labels)
            for correction in ("factored", other)
        ]
        assert_close(*losses)


@pytest.mark.parametrize(
    ("noise", "warns"),
    [
        (pm.Transition.pair(10, 0.4), False),  # the rows of the inverse sum up to 5
        (pm.Transition.pair(10, 0.45), True),  # to 10
        (pm.Transition.binary(0.45, 0.45), False),  # to 10 too, but with two classes there is no loss of accuracy
        (pm.Transition.symmetric(3, 0.6), True),
    ],
)
def test_a_matrix_with_which_the_objective_correction_fails(noise, warns):
    for correction in ("posterior", "forward", "factored"):
        pm.FPMLLoss("gan", transition=noise, correction=correction)
    if not warns:
        pm.FPMLLoss("gan", transition=noise, correction="objective")
        return
    with pytest.warns(PostmaxWarning, match=r'Use correction="forward": from 8 on') as caught:
        pm.FPMLLoss("gan", transition=noise, correction="objective")
    assert caught[0].filename == __file__


def test_errors_inside_a_divergence_are_not_swallowed():
    class Broken(pm.divergences.GAN):
        def penalty_sum_and_slope(self, s):
            raise RuntimeError("my bug")

    logits = torch.zeros(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="my bug"):
        pm.FPMLLoss(Broken())(logits, torch.tensor([0, 1]))
    with pytest.raises(RuntimeError, match="my bug"):
        pm.FPMLLoss(Broken())(logits, torch.tensor([0, -100]))


def test_matrices_are_copied_once_for_each_dtype():
    loss = pm.FPMLLoss("gan", transition=NOISE, correction="objective")
    z = torch.zeros(1, 2)
    assert loss.objective.background(z) is loss.objective.background(z)
    assert loss.objective.background(z.double()).dtype == torch.float64


CONFUSED = pm.Transition([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.25, 0.05, 0.7]])


def stabilised_label_weights(noise):
    """P⁻¹ divided by the largest sum of absolute values of its rows, by numpy and plain loops."""
    inverse = np.linalg.inv(noise.matrix.numpy())
    return inverse / max(sum(abs(entry) for entry in row) for row in inverse)


@pytest.mark.parametrize("noise", [NOISE, THREE, CONFUSED, pm.Transition.symmetric(4, 0.5)], ids=repr)
@pytest.mark.parametrize("link", ["exp", "sigmoid"])
def test_value_of_the_stabilised_objective_correction(noise, link):
    # KL is not tempered, so for log D above the floor the loss is Σ_i w_i·(ΣD − log D_i − 1) with the weights w.
    k = noise.num_classes
    logits = torch.randn(5, k, generator=torch.Generator().manual_seed(2), dtype=torch.float64) + 3
    loss = pm.FPMLLoss("kl", link, transition=noise, correction="objective", reduction="none")
    log_d = (logits if link == "exp" else torch.nn.functional.logsigmoid(logits)).numpy()
    assert log_d.min() > np.log(loss.objective.floor)
    weights = stabilised_label_weights(noise)
    for label in range(k):
        expected = [sum(weights[label, i] * (np.exp(row).sum() - row[i] - 1) for i in range(k)) for row in log_d]
        found = loss(logits, torch.full((5,), label))
        assert_close(found, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("noise", [NOISE, THREE, CONFUSED, pm.Transition.symmetric(4, 0.5)], ids=repr)
def test_no_row_pulls_harder_than_an_ordinary_label(noise):
    # The pull of a label on the logits is the sum of the absolute label weights; that of an ordinary label is 1.
    k = noise.num_classes
    weights = pm.FPMLLoss("gan", transition=noise, correction="objective").objective.label_weights(
        torch.eye(k, dtype=torch.float64)
    )
    pulls = weights.abs().sum(1)
    assert pulls.max().item() == pytest.approx(1, rel=1e-12)
    raw = pm.FPMLLoss("gan", transition=noise, correction="objective", floor=0).objective.label_weights(
        torch.eye(k, dtype=torch.float64)
    )
    assert_close(raw, noise.inverse)
    assert raw.abs().sum(1).max() > 1
    # The same seen from outside, at equal probabilities: no corrected row has a longer gradient than an ordinary label.
    logits = torch.zeros(k, k, dtype=torch.float64)
    corrected = pm.FPMLLoss("kl", "softmax", transition=noise, correction="objective", reduction="sum")
    ordinary = pm.FPMLLoss("kl", "softmax", reduction="sum")
    of_corrected, of_ordinary = (value_and_gradient(loss, logits, torch.arange(k))[1] for loss in (corrected, ordinary))
    assert (of_corrected.norm(dim=1) <= of_ordinary.norm(dim=1) + 1e-12).all()
