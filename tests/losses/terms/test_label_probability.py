"""Losses of the label's probability alone, against the formula in 40 digits."""

import math

import pytest
import torch
from loss_tester import value_and_gradient
from term_battery import every_check, mp, term, term_tester

import postmax as pm
from postmax.errors import InputError


def gce(p, q=0.7):
    return (1 - p ** mp.mpf(q)) / mp.mpf(q)


def focal(p, gamma=0.5):
    return -((1 - p) ** mp.mpf(gamma)) * mp.log(p)


def truncated_gce(p, k=0.5):
    return gce(p) if p > k else gce(mp.mpf(k))


def agce(p, a=0.6, q=0.6):
    a, q = mp.mpf(a), mp.mpf(q)
    return ((a + 1) ** q - (a + p) ** q) / q


def aul(p, a=5.5, q=3):
    a, q = mp.mpf(a), mp.mpf(q)
    return ((a - p) ** q - (a - 1) ** q) / q


def phuber(p, tau=10):
    return -mp.log(p) if p > mp.mpf(1) / tau else -tau * p + mp.log(tau) + 1


def of_label(name, reference, **options):
    return term_tester(name, lambda p, y: reference(p[y]), **options)


TESTERS = {
    "ce": of_label("ce", lambda p: -mp.log(p)),
    "mae": of_label("mae", lambda p: 1 - p),
    "rce": of_label("rce", lambda p: -mp.log(mp.mpf("1e-4")) * (1 - p)),
    "gce": of_label("gce", gce),
    "truncated-gce": of_label("truncated-gce", truncated_gce),
    "focal": of_label("focal", focal),
    "agce": of_label("agce", agce),
    "aul": of_label("aul", aul),
    "ael": of_label("ael", lambda p: mp.exp(-p / mp.mpf(2.5))),
    "phuber-ce": of_label("phuber-ce", phuber),
}
OTHER_OPTIONS = {
    "focal, gamma=2": of_label("focal", lambda p: focal(p, 2), gamma=2),
    "agce, q=1.5": of_label("agce", lambda p: agce(p, 6, 1.5), a=6.0, q=1.5),
}


@every_check(TESTERS | OTHER_OPTIONS, compiled={"ce", "gce", "focal", "phuber-ce"})
def test_battery(name, check):
    getattr((TESTERS | OTHER_OPTIONS)[name], check)()


# As functions of s = log p: loss and derivative, where the label is almost certain.
CERTAIN = {"focal": focal, "gce": gce, "agce": agce, "aul": aul}


@pytest.mark.parametrize("name", CERTAIN)
def test_loss_and_derivative_of_labels_that_are_almost_certain(name):
    logits = torch.tensor([[m, 0.0, -0.5] for m in (3.0, 5.0, 7.0)])
    value, gradient = value_and_gradient(
        pm.losses.get(name, reduction="none"), logits, torch.zeros(3, dtype=torch.int64)
    )
    for row, loss_value, slope in zip(logits.tolist(), value.tolist(), gradient[:, 0].tolist(), strict=True):
        z, rest = mp.mpf(row[0]), sum(mp.exp(x) for x in row[1:])
        exact = mp.diff(lambda x, rest=rest: CERTAIN[name](1 / (1 + rest * mp.exp(-x))), z)
        assert loss_value == pytest.approx(float(CERTAIN[name](1 / (1 + rest * mp.exp(-z)))), rel=2e-4)
        assert slope == pytest.approx(float(exact), rel=2e-4)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0])
def test_focal_loss_of_labels_beyond_doubt(gamma):
    # 1 − p is 1e-9, 1e-22 and 1e-44 here; p rounds to 1, its loss and all derivatives do not become 0 or NaN for it.
    logits = torch.tensor([[m, 0.0, -0.5] for m in (20.0, 50.0, 100.0)], requires_grad=True)
    value = pm.losses.get("focal", gamma=gamma, reduction="none")(logits, torch.zeros(3, dtype=torch.int64))
    (gradient,) = torch.autograd.grad(value.sum(), logits, create_graph=True)
    (second,) = torch.autograd.grad(gradient[:, 0].sum(), logits)
    for i, m in enumerate((20.0, 50.0, 100.0)):
        rest = mp.exp(-m) * (1 + mp.exp(-0.5))
        tiny = 1e-37  # below, float32 has fewer digits
        assert value[i].item() == pytest.approx(float(focal(1 / (1 + rest), gamma)), rel=1e-5, abs=tiny)
        slope = -(1 + mp.mpf(gamma)) * rest ** (1 + mp.mpf(gamma))
        assert gradient[i, 0].item() == pytest.approx(float(slope), rel=1e-5, abs=tiny)
        assert second[i, 0].item() == pytest.approx(float(-(1 + mp.mpf(gamma)) * slope), rel=1e-5, abs=tiny)


def test_focal_loss_without_focus_is_cross_entropy():
    logits, labels = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)), torch.arange(50) % 4
    torch.testing.assert_close(pm.losses.get("focal", gamma=0)(logits, labels), pm.losses.get("ce")(logits, labels))


def test_truncated_gce_gives_up_nothing_at_the_start():
    truncated = term("truncated-gce", q=0.5)
    assert truncated.at(0.0) == truncated.at(0.33) == term("gce", q=0.5)
    assert truncated.at(40 / 120) is truncated
    assert term("truncated-gce", start=0).at(0) == term("truncated-gce", start=0)
    loss, logits = pm.losses.get("truncated-gce"), torch.tensor([[-1.0, 0.0], [1.0, 0.0]])
    gradient = value_and_gradient(loss, logits, torch.zeros(2, dtype=torch.int64))[1]
    assert gradient[0].tolist() == [0, 0]
    assert gradient[1].all()
    assert value_and_gradient(loss.at(0.1), logits, torch.zeros(2, dtype=torch.int64))[1].all()


def test_asymmetric_unhinged_loss_of_power_one_is_the_mean_absolute_error():
    logits, labels = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)), torch.arange(50) % 4
    torch.testing.assert_close(pm.losses.get("aul", a=7, q=1)(logits, labels), pm.losses.get("mae")(logits, labels))
    with pytest.raises(InputError, match="unknown loss 'unhinged'"):  # which is 1 − z, another loss
        pm.losses.get("unhinged")


@pytest.mark.parametrize(("name", "options"), [("agce", {"a": 1.0, "q": 112.0}), ("aul", {"a": 1.5, "q": 70.0})])
def test_large_powers_stay_in_range(name, options):
    for label in (0, 1):
        loss, logits = pm.losses.get(name, **options), torch.tensor([[9.0, -9.0]])
        assert all(x.isfinite().all() for x in value_and_gradient(loss, logits, torch.tensor([label])))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("focal", {"gamma": -1}, "gamma must be a number ≥ 0, got -1"),
        ("focal", {"gamma": math.nan}, "gamma must be a number ≥ 0, got nan"),
        ("truncated-gce", {"q": 0}, "q must be a positive number, got 0"),
        ("truncated-gce", {"k": 1}, "k must be a probability below 1, got 1"),
        ("truncated-gce", {"start": 40}, "start is a share of the training, from 0 to 1, got 40"),
        ("truncated-gce", {"start": "abc"}, "start is a share of the training, from 0 to 1, got 'abc'"),
        ("truncated-gce", {"q": 2}, r"q must lie in \(0, 1\].*, got 2"),
        ("gce", {"q": 2}, r"q must lie in \(0, 1\], from cross-entropy to the mean absolute error, got 2"),
        ("agce", {"q": 1e6}, r"\(a \+ 1\)\^q must be below 1e34, to stay in range, got a = 0\.6 and q = 1000000\.0"),
        ("aul", {"q": 1e6}, r"a\^q and \(a/\(a − 1\)\)\^q must be below 1e34"),
        ("aul", {"a": 1.0001, "q": 20}, r"a\^q and \(a/\(a − 1\)\)\^q must be below 1e34"),
        ("agce", {"a": 0}, "a must be a positive number, got 0"),
        ("aul", {"a": 1}, "a must be above 1, got 1"),
        ("aul", {"q": "3"}, "q must be a positive number, got '3'"),
        ("ael", {"a": -2.5}, r"a must be a positive number, got -2\.5"),
        ("phuber-ce", {"tau": 1}, "tau must be above 1, got 1"),
        ("focal", {"gama": 2}, r"unknown option of the loss focal 'gama'\. Did you mean 'gamma'"),
    ],
)
def test_wrong_options(name, options, message):
    with pytest.raises(InputError, match=message):
        term(name, **options)
