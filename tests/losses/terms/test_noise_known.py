"""Losses that are told the noise, against their formulas."""

import pytest
import torch
from loss_tester import EXTREME, close, value_and_gradient
from term_battery import every_check, mp, softmax, term, term_tester

import postmax as pm
from postmax.errors import InputError

SYMMETRIC = pm.Transition.symmetric(3, 0.3)  # which leaves the classes their names, as the battery wants
NOISE = pm.Transition([[0.7, 0.2, 0.1], [0.0, 0.8, 0.2], [0.3, 0.0, 0.7]])
BINARY = pm.Transition([[0.9, 0.1], [0.3, 0.7]])
LOGITS = 2 * torch.randn(12, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.arange(12) % 3


def matrix(tensor):
    return [[mp.mpf(x) for x in row] for row in tensor.tolist()]


def unbiased(noise, base):
    inverse = matrix(noise.inverse)
    return lambda p, y: sum(inverse[y][j] * base(p[j]) for j in range(len(p)))


def ce(p):
    return -mp.log(p)


def gce(p):
    return (1 - p ** mp.mpf(0.7)) / mp.mpf(0.7)


def mixed(noise):
    rows = matrix(noise.matrix)
    return lambda p, y: sum(rows[i][y] * p[i] for i in range(len(p)))


def reweighted(noise):
    return lambda p, y: -p[y] / mixed(noise)(p, y) * mp.log(p[y])


TESTERS = {
    "unbiased": term_tester("unbiased", unbiased(SYMMETRIC, ce), class_weights=False, transition=SYMMETRIC),
    "reweighting": term_tester("reweighting", reweighted(SYMMETRIC), class_weights=False, transition=SYMMETRIC),
}
TESTED_BY_HAND = ("natarajan",)  # the battery has three classes
INFINITE_IF_MASKED = {"unbiased", "natarajan"}
# No gradient flows through the weight, which finite differences do not know.
DETACHED = {"check_first_derivatives", "check_second_derivatives", "check_derivatives_at_zero_probability"}
# The battery tries eleven classes on large batches; the matrix is for three.
THREE_CLASSES = {"check_large_batch"}
# They would weigh noisy labels.
NO_WEIGHTS = {"check_repetition_equals_weight"}


@every_check(
    {"unbiased": TESTERS["unbiased"]}, without=THREE_CLASSES | NO_WEIGHTS, infinite_if_masked=INFINITE_IF_MASKED
)
def test_battery(name, check):
    getattr(TESTERS[name], check)()


@every_check({"reweighting": TESTERS["reweighting"]}, without=THREE_CLASSES | NO_WEIGHTS | DETACHED)
def test_battery_without_finite_differences(name, check):
    getattr(TESTERS[name], check)()


# Every loss for noise that treats classes differently, and for every label.

REFERENCES = {
    "forward": lambda p, y: -mp.log(mixed(NOISE)(p, y)),
    "backward": unbiased(NOISE, ce),
    "unbiased": unbiased(NOISE, ce),
    "reweighting": reweighted(NOISE),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_values(name):
    loss = pm.losses.get(name, transition=NOISE, reduction="none")
    for logits, dtype in ((LOGITS, torch.float64), (LOGITS, torch.float32), (EXTREME, torch.float32)):
        for label in range(3):
            expected = [float(REFERENCES[name](softmax(row), label)) for row in logits.to(dtype).tolist()]
            value, gradient = value_and_gradient(loss, logits.to(dtype), torch.full((len(logits),), label))
            close(value, torch.tensor(expected, dtype=dtype), dtype)
            assert gradient.isfinite().all()


@pytest.mark.parametrize("name", REFERENCES)
def test_posteriors(name):
    loss = pm.losses.get(name, transition=NOISE)
    torch.testing.assert_close(loss.posterior(LOGITS), LOGITS.softmax(1))
    torch.testing.assert_close(loss.label_posterior(LOGITS), LOGITS.softmax(1) @ NOISE.matrix)
    assert loss.transition == NOISE
    assert not loss.corrects_posterior


@pytest.mark.parametrize("name", [*REFERENCES, "natarajan"])
def test_the_noise_has_to_be_given(name):
    with pytest.raises(InputError, match=f"{name} needs the label noise"):
        pm.losses.get(name)
    assert pm.losses.describe(name).needs == "the transition matrix"


def test_patrini():
    p, y = LOGITS.softmax(1), LABELS
    forward = -(p @ NOISE.matrix)[range(12), y].log()
    backward = -(NOISE.inverse[y] * p.log()).sum(1)
    for name, expected in (("forward", forward), ("backward", backward)):
        for reduction, value in (("none", expected), ("mean", expected.mean()), ("sum", expected.sum())):
            found = pm.losses.get(name, transition=NOISE, reduction=reduction)
            torch.testing.assert_close(found(LOGITS, LABELS), value)
    with pytest.raises(InputError, match="class weights cannot be combined with the forward correction"):
        pm.losses.get("forward", transition=NOISE, weight=torch.ones(3))
    with pytest.raises(InputError, match="unknown option of the loss forward 'floor'"):
        pm.losses.get("forward", transition=NOISE, floor=0.1)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_unbiased_cross_entropy_is_the_backward_correction(reduction):
    found = [pm.losses.get(name, transition=NOISE, reduction=reduction) for name in ("unbiased", "backward")]
    soft = LOGITS.flip(0).softmax(1)
    for target in (LABELS, LABELS.where(LABELS != 1, -100), soft):
        estimated, backward = (value_and_gradient(loss, LOGITS, target) for loss in found)
        close(estimated, backward)


@pytest.mark.parametrize("name", ["unbiased", "reweighting"])
def test_class_weights_would_weigh_noisy_labels(name):
    loss = pm.losses.get(name, transition=NOISE)
    message = f"class weights cannot be combined with the loss {name}: they would weigh the noisy labels"
    for refused in (loss, loss + pm.losses.get("nce"), pm.losses.get("logit-clip", base=loss)):
        with pytest.raises(InputError, match=message):
            pm.losses.TermLoss(refused.term, weight=torch.ones(3))
        with pytest.raises(InputError, match=message):
            pm.functional.term_loss(LOGITS, LABELS, refused, weight=torch.ones(3))


@pytest.mark.parametrize("base", ["ce", "gce", "mae", term("gce", q=0.5)], ids=str)
def test_the_mean_over_noisy_labels_is_the_loss_of_the_true_one(base):
    estimator = pm.losses.get("unbiased", transition=NOISE, base=base, reduction="none")
    clean = pm.losses.TermLoss(term(base) if isinstance(base, str) else base, reduction="none")
    for true in range(3):
        labels = torch.full((12,), true)
        found = [NOISE.matrix[true, j] * estimator(LOGITS, torch.full((12,), j)) for j in range(3)]
        torch.testing.assert_close(sum(found), clean(LOGITS, labels))


def test_estimators_of_losses_that_mix_rows_or_change():
    estimator = pm.losses.get("unbiased", transition=NOISE, base="peer")
    assert estimator.mixes_rows
    assert estimator(LOGITS, LABELS).isfinite()
    assert estimator.at(0).term == term("unbiased", transition=NOISE, base=term("ce"))
    assert estimator.at(1) is estimator
    with pytest.raises(InputError, match="noise is for 3 classes, the base loss for 2"):
        term("unbiased", transition=NOISE, base=term("unbiased", transition=BINARY))


@pytest.mark.parametrize("base", ["ce", "gce"])
def test_natarajan(base):
    # As published: own and other are how often labels of the class itself and of the other one are flipped.
    loss = pm.losses.get("natarajan", transition=BINARY, base=base, reduction="none")
    loss_of, logits, rates = {"ce": ce, "gce": gce}[base], EXTREME[:, :2].float(), (mp.mpf(0.1), mp.mpf(0.3))
    for z in (logits, LOGITS[:, :2]):
        for y in (0, 1):
            expected = []
            for row in z.tolist():
                p = softmax(row)
                own, other = rates[y], rates[1 - y]
                expected.append(float(((1 - other) * loss_of(p[y]) - own * loss_of(p[1 - y])) / (1 - own - other)))
            value, gradient = value_and_gradient(loss, z, torch.full((len(z),), y))
            close(value, torch.tensor(expected, dtype=z.dtype), z.dtype)
            assert gradient.isfinite().all()
    with pytest.raises(InputError, match="natarajan is for two classes, the noise has 3"):
        pm.losses.get("natarajan", transition=NOISE)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("soft", [False, True])
def test_gradient_of_reweighting(dtype, soft):
    loss = pm.losses.get("reweighting", transition=NOISE, reduction="none")
    for logits in (LOGITS.to(dtype), EXTREME.to(dtype)):
        for label in range(3):
            target = torch.full((len(logits),), label)
            if soft:
                target = torch.nn.functional.one_hot(target, 3).to(dtype)
            gradient = value_and_gradient(loss, logits, target)[1]
            for row, found in zip(logits.tolist(), gradient.tolist(), strict=True):
                p = softmax(row)
                weight = p[label] / mixed(NOISE)(p, label)
                exact = [float(weight * (p[k] - (k == label))) for k in range(3)]
                assert found == pytest.approx(exact, rel=1e-5 if dtype == torch.float32 else 1e-12, abs=1e-37)


def test_weights_of_improbable_classes_are_exact():
    # p_y is e^−20000, yet its weight is that of the two classes it can come from.
    loss = pm.losses.get("reweighting", transition=NOISE)
    gradient = value_and_gradient(loss, torch.tensor([[-1e4, 1e4, -9999.5]]), torch.tensor([0]))[1]
    weight = 1 / (0.7 + 0.3 * torch.tensor(0.5).exp())
    torch.testing.assert_close(gradient, weight * torch.tensor([[-1.0, 1.0, 0.0]]), rtol=1e-6, atol=0)


def test_noise_that_reweighting_cannot_use():
    with pytest.raises(InputError, match="class 0 never keeps its label"):
        pm.losses.get("reweighting", transition=pm.Transition([[0.0, 1.0, 0.0], [0.0, 0.2, 0.8], [0.9, 0.0, 0.1]]))
