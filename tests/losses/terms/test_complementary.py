"""Losses for labels that the rows do not have, against their formulas and against exact expectations."""

import math
from functools import partial

import pytest
import torch
from loss_tester import EXTREME, close, make_logits, value_and_gradient
from term_battery import every_check, mp, term_tester
from torch.autograd import gradcheck, gradgradcheck

import postmax as pm
from postmax.errors import InputError
from postmax.losses.terms.complementary import NonNegativeComplementaryLoss

NON_NEGATIVE = "complementary-non-negative"


def pairwise(p, y):
    """σ of a difference of two logits is the share of the first in the sum of both probabilities."""
    others = len(p) - 1
    won = sum(p[y] / (p[y] + p[j]) for j in range(len(p)) if j != y)
    return others * won - mp.mpf(others * (others - 1)) / 2


def unbiased(p, y):
    return -sum(mp.log(q) for q in p) + (len(p) - 1) * mp.log(p[y])


TESTERS = {
    "complementary": term_tester(
        "complementary", lambda p, y: -mp.log(sum(q for j, q in enumerate(p) if j != y)), class_weights=False
    ),
    "complementary-pairwise": term_tester("complementary-pairwise", pairwise, class_weights=False),
    "complementary-unbiased": term_tester("complementary-unbiased", unbiased, class_weights=False),
}
INFINITE_IF_MASKED = {"complementary", "complementary-unbiased"}


@every_check(TESTERS, without={"check_repetition_equals_weight"}, infinite_if_masked=INFINITE_IF_MASKED)
def test_battery(name, check):
    getattr(TESTERS[name], check)()


# The one that belongs to a batch.

LOGITS = make_logits(9, 3)
LABELS = torch.tensor([0, 1, 2, 2, 1, 0, 2, 2, 1])


def loop_non_negative(logits, labels):
    """One class and one row after the other."""
    rows, k = logits.softmax(1).tolist(), logits.shape[1]
    total = 0.0
    for j in range(k):
        everyone = sum(-math.log(p[j]) for p in rows) / len(rows)
        accused = [-math.log(p[j]) for p, y in zip(rows, labels.tolist(), strict=True) if y == j]
        share = len(accused) / len(rows)
        total += max(0.0, everyone - (k - 1) * share * (sum(accused) / len(accused) if accused else 0.0))
    return total


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("labels", [LABELS, torch.zeros(9, dtype=torch.int64)], ids=["all classes", "one class"])
def test_non_negative_against_a_loop(scale, labels):
    loss = pm.losses.get(NON_NEGATIVE)
    expected = loop_non_negative(scale * LOGITS, labels)
    close(loss(scale * LOGITS, labels), torch.tensor(expected, dtype=torch.float64))
    rows = torch.full((9,), expected, dtype=torch.float64)
    close(pm.losses.get(NON_NEGATIVE, reduction="none")(scale * LOGITS, labels), rows)
    close(pm.losses.get(NON_NEGATIVE, reduction="sum")(scale * LOGITS, labels), rows.sum())


def test_a_class_whose_risk_is_negative_teaches_nothing():
    """Both rows are sure not to be of class 0, so its risk is 0 with the maximum and negative without it."""
    logits = torch.tensor([[-9.0, 0.0, 0.0], [-8.0, 0.5, 0.0]], dtype=torch.float64)
    labels = torch.zeros(2, dtype=torch.int64)
    value, gradient = value_and_gradient(pm.losses.get(NON_NEGATIVE), logits, labels)
    others = value_and_gradient(lambda z, _: -z.log_softmax(1)[:, 1:].sum(1).mean(), logits, labels)
    close((value, gradient), others)
    assert float(pm.losses.get("complementary-unbiased")(logits, labels)) < 0


def test_non_negative_ignores_rows_and_takes_pixels():
    labels, logits = LABELS.clone(), LOGITS.clone()
    labels[[3, 5]], logits[3], logits[5] = -100, torch.nan, torch.inf
    kept = labels >= 0
    for reduction in ("mean", "sum"):
        loss = pm.losses.get(NON_NEGATIVE, reduction=reduction)
        value, gradient = value_and_gradient(loss, logits, labels)
        close((value, gradient[kept]), value_and_gradient(loss, logits[kept], labels[kept]))
        assert not gradient[~kept].any()
    assert pm.losses.get(NON_NEGATIVE)(LOGITS, torch.full((9,), -100)).isnan()
    images, classes = make_logits(2, 3, 2, 3), torch.arange(12).reshape(2, 2, 3) % 3
    rows = images.movedim(1, -1).reshape(-1, 3)
    close(pm.losses.get(NON_NEGATIVE)(images, classes), pm.losses.get(NON_NEGATIVE)(rows, classes.flatten()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_non_negative_in_low_precision(dtype):
    loss, logits = pm.losses.get(NON_NEGATIVE), LOGITS.to(dtype)
    exact = value_and_gradient(loss, logits.double(), LABELS)
    close(value_and_gradient(loss, logits, LABELS), tuple(part.to(dtype) for part in exact), dtype)
    value, gradient = value_and_gradient(loss, EXTREME.to(dtype), torch.arange(8) % 3)
    close(value, loss(EXTREME, torch.arange(8) % 3).to(dtype), dtype)
    assert gradient.isfinite().all()


def test_derivatives_and_transforms_of_non_negative():
    loss = pm.losses.get(NON_NEGATIVE)
    logits, q = LOGITS.clone().requires_grad_(), make_logits(9, 3, seed=1).softmax(1).requires_grad_()
    assert gradcheck(loss, (logits, LABELS), check_forward_ad=True)
    assert gradcheck(loss, (logits, q), check_forward_ad=True)
    assert gradgradcheck(loss, (logits, LABELS))
    batches, labels = make_logits(4, 9, 3), LABELS.expand(4, -1)
    expected = torch.stack([value_and_gradient(loss, z, y)[1] for z, y in zip(batches, labels, strict=True)])
    close(torch.func.vmap(torch.func.grad(loss))(batches, labels), expected)
    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    close(value_and_gradient(compiled, batches[0], LABELS), value_and_gradient(loss, batches[0], LABELS))


# What they estimate.


def expectation(loss, logits, posterior):
    """The mean loss over the true classes and over all labels that a row does not have."""
    k = logits.shape[1]
    total = torch.zeros((), dtype=torch.float64)
    for true in range(k):
        for label in (j for j in range(k) if j != true):
            values = loss(logits, torch.full((len(logits),), label))
            total = total + (posterior[:, true] * values).mean() / (k - 1)
    return total


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("base", ["ce", "mae", "gce", "gan-pml"])
def test_the_unbiased_loss_has_the_mean_of_its_base(k, base):
    logits, posterior = 3 * make_logits(5, k), make_logits(5, k, seed=1).softmax(1)
    ordinary = pm.losses.get(base, reduction="none")
    found = expectation(pm.losses.get("complementary-unbiased", base=base, reduction="none"), logits, posterior)
    true = [posterior[:, j] * ordinary(logits, torch.full((5,), j)) for j in range(k)]
    close(found, torch.stack(true).sum(0).mean())


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_pairwise_loss_has_the_mean_of_the_ordinary_pairwise_loss(k):
    logits, posterior = make_logits(5, k), make_logits(5, k, seed=1).softmax(1)
    found = expectation(pm.losses.get("complementary-pairwise", reduction="none"), logits, posterior)
    ordinary = 0.0
    for row, p in zip(logits.tolist(), posterior.tolist(), strict=True):
        for true in range(k):
            beaten = sum(1 / (1 + math.exp(row[true] - row[j])) for j in range(k) if j != true)
            ordinary += p[true] * beaten / 5
    close(found, torch.tensor(ordinary, dtype=torch.float64))


def test_the_forward_loss_is_least_at_the_true_posterior():
    posterior = make_logits(1, 4, seed=1).softmax(1)
    loss = pm.losses.get("complementary", reduction="none")
    _, gradient = value_and_gradient(partial(expectation, loss), posterior.log(), posterior)
    close(gradient, torch.zeros(1, 4, dtype=torch.float64), atol=1e-10)


def test_the_unbiased_loss_is_the_one_with_the_inverse_of_the_noise():
    inverse = pm.Transition.complementary(3).inverse
    close(inverse, 1 - 2 * torch.eye(3, dtype=torch.float64))
    losses = -LOGITS.log_softmax(1)
    close(pm.losses.get("complementary-unbiased", reduction="none")(LOGITS, LABELS), (inverse[LABELS] * losses).sum(1))


def test_with_two_classes_it_is_the_loss_of_the_other_class():
    logits, labels = make_logits(8, 2), torch.arange(8) % 2
    expected = value_and_gradient(pm.losses.get("ce", reduction="none"), logits, 1 - labels)
    for name in ("complementary", "complementary-unbiased"):
        close(value_and_gradient(pm.losses.get(name, reduction="none"), logits, labels), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_sure_of_a_class_that_the_row_does_not_have(dtype):
    """1 − p rounds to 0 here, but its logarithm and the gradient are those of the other logits."""
    logits = torch.tensor([[1e4, 0.0, 0.0], [50.0, 0.0, -1e4], [-1e4, 3.0, 1.0]], dtype=dtype)
    value, gradient = value_and_gradient(
        pm.losses.get("complementary", reduction="none"), logits, torch.zeros(3, dtype=torch.int64)
    )
    close(value, torch.tensor([1e4 - math.log(2), 50.0, 0.0], dtype=dtype), dtype)
    close(gradient, torch.tensor([[1.0, -0.5, -0.5], [1.0, -1.0, 0.0], [0.0, 0.0, 0.0]], dtype=dtype), dtype)


@pytest.mark.parametrize("name", [*TESTERS, NON_NEGATIVE])
def test_what_they_say_about_themselves(name):
    loss = pm.losses.get(name)
    assert loss.complementary
    assert not pm.losses.get("ce").complementary
    p = LOGITS.softmax(1)
    close(loss.posterior(LOGITS), p)
    close(loss.label_posterior(LOGITS), p @ pm.Transition.complementary(3).matrix)
    close(loss.posterior(loss.logits_of(p)), p)
    assert pm.losses.describe(name).needs == "labels of classes that the rows do not have"
    with pytest.raises(InputError, match="class weights cannot be combined with complementary labels"):
        pm.losses.get(name, weight=torch.ones(3))


@pytest.mark.parametrize("name", ["complementary-unbiased", NON_NEGATIVE])
def test_bases(name):
    loss = pm.losses.get(name, base="gan-pml")
    close(loss.posterior(LOGITS), pm.losses.get("gan-pml").posterior(LOGITS))
    for base in ("complementary", "peer"):
        with pytest.raises(InputError, match="the base of a loss for complementary labels is an ordinary loss"):
            pm.losses.get(name, base=base)
    later = pm.losses.get(name, base="nls")
    assert later.at(0.9) is later
    close(later.at(0.1)(LOGITS, LABELS), pm.losses.get(name)(LOGITS, LABELS))


def test_non_negative_as_text_and_with_a_number_of_classes():
    assert repr(pm.losses.get(NON_NEGATIVE, num_classes=3)) == "NonNegativeComplementaryLoss(CE(), num_classes=3)"
    with pytest.raises(InputError, match="the loss was made for 4"):
        NonNegativeComplementaryLoss(num_classes=4)(LOGITS, LABELS)


def test_a_sum_with_an_ordinary_loss_is_refused():
    with pytest.raises(InputError, match="they cannot have the same labels"):
        pm.losses.get("ce") + pm.losses.get("complementary")
    both = pm.losses.get("complementary") + pm.losses.get("complementary-pairwise")
    assert both.complementary
    close(both.label_posterior(LOGITS), (1 - LOGITS.softmax(1)) / 2)
