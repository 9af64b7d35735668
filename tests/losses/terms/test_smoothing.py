"""Smoothed and complementary labels, and the confidence regulariser, against the formula in 40 digits."""

import pytest
import torch
from loss_tester import EXTREME, value_and_gradient
from term_battery import every_check, mp, softmax, term, term_tester

import postmax as pm
from postmax.errors import InputError

LOGITS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.tensor([0, 1, 2, 0, 1, 2])


def smoothed(r):
    return lambda p, y: -(1 - mp.mpf(r)) * mp.log(p[y]) - mp.mpf(r) * sum(map(mp.log, p)) / len(p)


def nlnl(p, y):
    rest = [sum(x for j, x in enumerate(p) if j != k) for k in range(len(p))]  # 1 − p would need more digits
    return -sum(mp.log(rest[k]) for k in range(len(p)) if k != y) / (len(p) - 1)


def cores(p, y):
    return -mp.log(p[y]) + 2 * sum(map(mp.log, p)) / len(p)


TESTERS = {
    "label-smoothing": term_tester("label-smoothing", smoothed(0.1)),
    "negative-label-smoothing": term_tester("negative-label-smoothing", smoothed(-1)),
    "nlnl": term_tester("nlnl", nlnl),
    "cores": term_tester("cores", cores),
}


INFINITE_IF_MASKED = {"cores", "label-smoothing", "negative-label-smoothing"}


@every_check(TESTERS, compiled={"nlnl"}, infinite_if_masked=INFINITE_IF_MASKED)
def test_battery(name, check):
    getattr(TESTERS[name], check)()


def test_smoothing_is_that_of_cross_entropy():
    expected = torch.nn.functional.cross_entropy(LOGITS, LABELS, label_smoothing=0.1)
    torch.testing.assert_close(pm.losses.get("label-smoothing")(LOGITS, LABELS), expected)


def test_negative_smoothing_waits_for_a_warm_up():
    loss = pm.losses.get("negative-label-smoothing", rate=-2)
    assert loss.at(0.49).term == term("ce")
    assert loss.at(0.5) is loss
    assert pm.losses.get("label-smoothing").at(0).term == term("label-smoothing")


def test_negative_learning_is_the_mean_of_all_draws():
    p = LOGITS.softmax(1)
    draws = [-(1 - p[i, k]).log() for i, y in enumerate(LABELS) for k in range(3) if k != y]
    torch.testing.assert_close(pm.losses.get("nlnl")(LOGITS, LABELS), torch.stack(draws).mean())


@pytest.mark.parametrize("label", range(3))
def test_negative_learning_of_extreme_logits(label):
    # Where another class than the label has all of the probability, the loss is the distance to the next best class.
    labels = torch.full((len(EXTREME),), label)
    value, gradient = value_and_gradient(pm.losses.get("nlnl", reduction="none"), EXTREME.float(), labels)
    expected = [float(nlnl(softmax(row), label)) for row in EXTREME.tolist()]
    torch.testing.assert_close(value, torch.tensor(expected), rtol=1e-6, atol=1e-6)
    assert gradient.isfinite().all()


def test_negative_learning_of_labels_beyond_doubt():
    logits = torch.tensor([[50.0, 0.0, -0.5]])
    value, gradient = value_and_gradient(pm.losses.get("nlnl"), logits, torch.tensor([0]))
    rest = (1 + mp.exp(-0.5)) * mp.exp(-50) / 2
    assert value.item() == pytest.approx(float(rest), rel=1e-5)
    assert gradient[0, 0].item() == pytest.approx(float(-rest), rel=1e-5)


def test_cores_with_a_prior_and_on_the_way():
    prior = (0.5, 0.3, 0.2)
    loss = pm.losses.get("cores", beta=1.5, prior=prior)
    log_p = LOGITS.log_softmax(1)
    expected = -log_p[range(6), LABELS] + 1.5 * log_p @ torch.tensor(prior, dtype=torch.float64)
    torch.testing.assert_close(loss(LOGITS, LABELS), expected.mean())
    assert loss.at(0.1).term == term("ce")
    assert loss.at(0.25).term.beta == pytest.approx(0.75)
    assert loss.at(0.4) is loss
    with pytest.raises(InputError, match=r"have 2 classes; the loss was made for 3, as its .* prior says"):
        loss(LOGITS[:, :2], LABELS)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("label-smoothing", {"rate": 1}, "rate must be a number below 1"),
        ("label-smoothing", {"rate": "a"}, "rate must be a number below 1"),
        ("negative-label-smoothing", {"start": 2}, "start is a share of the training"),
        ("cores", {"beta": 0}, "beta must be a positive number"),
        ("cores", {"prior": (0.5, 0.4)}, "prior must be the shares of the classes and sum to 1"),
        ("cores", {"prior": 0.5}, r"prior must be the shares of the classes, numbers, got 0\.5"),
        ("cores", {"prior": "abc"}, "prior must be the shares of the classes, numbers, got 'abc'"),
        ("cores", {"prior": [0.5, None]}, "prior must be the shares of the classes, numbers"),
        ("cores", {"ramp": (0.5, 0.4)}, "0 ≤ start ≤ end ≤ 1"),
        ("cores", {"ramp": 3}, "ramp is two shares of the training"),
    ],
)
def test_options_that_make_no_sense(name, options, message):
    with pytest.raises(InputError, match=message):
        pm.losses.get(name, **options)
