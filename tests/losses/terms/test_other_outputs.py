"""Losses whose posterior is not the softmax, or that change the label."""

import math
from functools import cache, partial

import pytest
import torch
from loss_tester import EXTREME, LossTester, close, make_logits, value_and_gradient
from term_battery import every_check, mp, softmax, term, term_tester
from torch.utils._python_dispatch import TorchDispatchMode

import postmax as pm
from postmax.errors import InputError

BOUND, ALPHA, BETA = mp.mpf(1 / 1.5), mp.mpf(0.1), mp.mpf(0.6)  # the defaults


def clipped(row, bound):
    z = [mp.mpf(x) for x in row]
    masked = [x < -1e20 for x in z]  # classes that were taken out
    norm = mp.sqrt(sum(x * x for x, out in zip(z, masked, strict=True) if not out))
    return z if norm <= bound else [x if out else x * bound / norm for x, out in zip(z, masked, strict=True)]


@cache
def clip_ce(row, label, bound=BOUND):
    return -mp.log(softmax(clipped(row, bound))[label])


@cache
def tempered_softmax(row, t2):
    """By bisection of the normalisation, on a scale that resolves probabilities near one."""
    z, t = [mp.mpf(x) for x in row], mp.mpf(t2) - 1

    def probabilities(shift):
        return [(1 + t * (shift + max(z) - x)) ** (-1 / t) for x in z]

    low, high = mp.mpf(0), (mp.mpf(len(z)) ** t - 1) / t
    for _ in range(140):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(probabilities(middle)) > 1 else (low, middle)
    return probabilities(low)


@cache
def bi_tempered(row, label, t1=0.8, t2=1.2):
    p, t1 = tempered_softmax(row, t2), mp.mpf(t1)
    return (1 - p[label] ** (1 - t1)) / (1 - t1) - (1 - sum(x ** (2 - t1) for x in p)) / (2 - t1)


def rda(p, y, alpha=ALPHA, beta=BETA):
    target = ambiguous(p, y, alpha, beta)
    return sum(t * mp.log(t / x) for t, x in zip(target, p, strict=True) if t)


def ambiguous(p, y, alpha=ALPHA, beta=BETA):
    """The target of data ambiguation."""
    plausible = [k == y or x > beta for k, x in enumerate(p)]
    inside = sum(x for x, k in zip(p, plausible, strict=True) if k)
    outside = sum(x for x, k in zip(p, plausible, strict=True) if not k)
    if inside >= 1 - alpha:
        return p
    return [(1 - alpha) * x / inside if k else alpha * x / outside for x, k in zip(p, plausible, strict=True)]


def of_logits(name, reference, **options):
    found = term(name, **options)
    return LossTester(partial(pm.losses.get, name, **options), partial(pm.functional.term_loss, term=found), reference)


TESTERS = {
    "logit-clip": of_logits("logit-clip", clip_ce),
    "bi-tempered": of_logits("bi-tempered", bi_tempered),
    "rda": term_tester("rda", rda),
}
OTHER_OPTIONS = {
    "bi-tempered 0, 4": of_logits("bi-tempered", partial(bi_tempered, t1=0.0, t2=4.0), t1=0.0, t2=4.0),
    "logit-clip 3": of_logits("logit-clip", partial(clip_ce, bound=3), bound=3.0),
}
BOUNDED_FOR_TWO_CLASSES = {"rda"}  # but not for more
ALL = TESTERS | OTHER_OPTIONS


@every_check(ALL, compiled={"bi-tempered", "logit-clip"})
def test_battery(name, check):
    getattr(ALL[name], check)()


# Logit clipping


def test_clipping():
    loss = pm.losses.get("logit-clip", bound=2)
    logits = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [1e4, -1e4]])
    root = math.sqrt(2)
    expected = torch.tensor([[1.2, 1.6], [0.3, 0.4], [0.0, 0.0], [root, -root]])
    torch.testing.assert_close(loss.term.clip(logits), expected)
    torch.testing.assert_close(loss.posterior(logits), expected.softmax(1))
    assert loss.predict(logits).tolist() == [1, 1, 0, 0]


def test_logits_of_zero_have_the_derivatives_of_the_base():
    logits = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    for name in ("ce", "logit-clip"):
        value = pm.losses.get(name)(logits, torch.tensor([0, 1]))
        (first,) = torch.autograd.grad(value, logits, create_graph=True)
        (second,) = torch.autograd.grad(first[0, 0], logits)
        if name == "ce":
            expected = first.detach(), second
    torch.testing.assert_close((first.detach(), second), expected)


@pytest.mark.parametrize("row", [(1e4, -1e4, 9999.0), (1e4, 1e4, 1e4), (-1e4, 0.5, 0.25)])
def test_gradient_of_clipped_logits(row):
    # (I − ẑẑᵀ)·(p − onehot)·τ/‖z‖, of which the first two factors almost cancel.
    gradient = value_and_gradient(pm.losses.get("logit-clip"), torch.tensor([row]), torch.tensor([0]))[1]
    bound, norm = mp.mpf(1 / 1.5), mp.sqrt(sum(mp.mpf(x) ** 2 for x in row))
    slope = [p - (k == 0) for k, p in enumerate(softmax(clipped(row, bound)))]
    along = sum(mp.mpf(x) * s for x, s in zip(row, slope, strict=True)) / norm**2
    exact = [float((s - x * along) * bound / norm) for x, s in zip(row, slope, strict=True)]
    assert gradient[0].tolist() == pytest.approx(exact, rel=2e-6, abs=1e-12)


def test_any_loss_can_be_clipped():
    logits, labels = 9 * make_logits(6, 3), torch.arange(6) % 3
    for base in ("gce", "nce+rce", term("mae"), pm.losses.get("mae"), "peer"):
        loss = pm.losses.get("logit-clip", base=base, bound=1.5)
        expected = pm.functional.term_loss(loss.term.clip(logits), labels, base)
        torch.testing.assert_close(loss(logits, labels), expected)
    assert loss.mixes_rows
    assert loss.at(0).term == term("logit-clip", base=term("ce"), bound=1.5)
    noise = pm.Transition.symmetric(3, 0.2)
    corrected = term("logit-clip", base=term("unbiased", transition=noise))
    assert corrected.num_classes == 3
    torch.testing.assert_close(corrected.label_posterior(logits), corrected.posterior(logits) @ noise.matrix)


# Bi-tempered


@pytest.mark.parametrize("t2", [1.0001, 1.2, 2.0, 4.0, 10.0])
def test_tempered_softmax(t2):
    rows = torch.cat([EXTREME, make_logits(5, 3), torch.tensor([[0.0, -20.0, -50.0]])])
    expected = torch.tensor([[float(p) for p in tempered_softmax(tuple(row), t2)] for row in rows.tolist()])
    for dtype in (torch.float32, torch.float64):
        found = pm.losses.get("bi-tempered", t2=t2).posterior(rows.to(dtype))
        close(found, expected.to(dtype), torch.float32)
    total = term("bi-tempered", t2=t2).log_probabilities(10 * torch.randn(20, 1000)).exp().sum(1)
    torch.testing.assert_close(total, torch.ones(20, dtype=torch.float64), rtol=1e-13, atol=0)


def test_without_temperature_it_is_cross_entropy():
    logits, labels = make_logits(6, 3), torch.arange(6) % 3
    close(pm.losses.get("bi-tempered", t2=1).posterior(logits), logits.softmax(1))
    nearly = pm.losses.get("bi-tempered", t1=1 - 1e-9, t2=1 + 1e-9)(logits, labels)
    assert nearly.item() == pytest.approx(pm.losses.get("ce")(logits, labels).item(), abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_gradient_of_extreme_logits(dtype):
    # dL/dz = Σ_k (p_k − q_k)·p_k^(t2−t1)·(1_k − escort), for the label distribution q.
    loss, t1, t2 = pm.losses.get("bi-tempered", reduction="none"), mp.mpf(0.8), mp.mpf(1.2)
    for label in range(3):
        gradient = value_and_gradient(loss, EXTREME.to(dtype), torch.full((len(EXTREME),), label))[1]
        for row, found in zip(EXTREME.tolist(), gradient.tolist(), strict=True):
            p = tempered_softmax(tuple(row), 1.2)
            pull = [(x - (k == label)) * x ** (t2 - t1) for k, x in enumerate(p)]
            escort = [x**t2 / sum(y**t2 for y in p) for x in p]
            exact = [float(pull[k] - escort[k] * sum(pull)) for k in range(3)]
            assert found == pytest.approx(exact, rel=1e-5 if dtype == torch.float32 else 1e-9, abs=1e-15)


# Data ambiguation


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_gradient_of_data_ambiguation_is_that_of_a_fixed_target(dtype):
    loss = pm.losses.get("rda", reduction="none")
    logits = torch.cat([EXTREME, make_logits(20, 3), torch.tensor([[0.0, 3.0, 0.1], [2.0, 0.0, 0.0]])]).to(dtype)
    for label in range(3):
        gradient = value_and_gradient(loss, logits, torch.full((len(logits),), label))[1]
        for row, found in zip(logits.tolist(), gradient.tolist(), strict=True):
            p = softmax(row)
            exact = [float(x - t) for x, t in zip(p, ambiguous(p, label), strict=True)]
            assert found == pytest.approx(exact, abs=1e-6 if dtype == torch.float32 else 1e-14)


def test_two_plausible_classes_cost_nothing():
    logits = torch.tensor([[0.0, 5.0, 0.0], [5.0, 0.0, 0.0], [0.0, 0.4, 0.0]])
    value, gradient = value_and_gradient(pm.losses.get("rda", reduction="none"), logits, torch.zeros(3).long())
    assert value[:2].tolist() == [0, 0]
    assert not gradient[:2].any()
    assert value[2] > 0


def test_data_ambiguation_is_unbounded_with_a_third_class():
    logits = torch.tensor([[-1000.0, 0.0, 0.0]])
    assert pm.losses.get("rda")(logits, torch.tensor([0])) > 500


def test_the_threshold_follows_a_cosine():
    rda = term("rda")
    assert rda.at(0).beta == pytest.approx(0.75)
    assert rda.at(0.5).beta == pytest.approx(0.675)
    assert rda.at(1) == rda


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("logit-clip", {"bound": 0}, "bound must be a positive number"),
        ("logit-clip", {"base": "cee"}, "unknown loss 'cee'"),
        ("bi-tempered", {"t1": 1}, r"t1 must lie in \[0, 1\)"),
        ("bi-tempered", {"t2": 0.9}, r"t2 must lie in \[1, 10\], got 0.9: .* below, classes have no probability"),
        ("bi-tempered", {"t2": 1e300}, r"t2 must lie in \[1, 10\], got 1e\+300"),
        ("logit-clip", {"base": "reweighting"}, r'base=pm.losses.get\("reweighting", transition=…\)'),
        ("bi-tempered", {"t2": "2"}, "t2 must be a number"),
        ("rda", {"alpha": 0}, "alpha must be a number between 0 and 1"),
        ("rda", {"beta": 1}, "beta must be a number between 0 and 1"),
    ],
)
def test_options_that_make_no_sense(name, options, message):
    with pytest.raises(InputError, match=message):
        pm.losses.get(name, **options)


@pytest.mark.parametrize("name", ["rda", "nlnl"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_all_labels_at_once_cost_what_each_does(name, dtype):
    # By other formulas, since a set of classes for every class would need too much memory.
    generator = torch.Generator().manual_seed(0)
    for classes, spread in ((2, 3.0), (3, 6.0), (11, 8.0), (11, 50.0)):
        logits = (spread * torch.randn(60, classes, generator=generator, dtype=torch.float64)).to(dtype)
        logits[:20, 1] = -torch.inf
        loss = pm.losses.get(name, reduction="none")
        for label in range(classes):
            labels = torch.full((60,), label)
            keep = logits[:, label] > -torch.inf
            soft = torch.nn.functional.one_hot(labels, classes).to(dtype)
            expected = value_and_gradient(loss, logits[keep], labels[keep])
            close(value_and_gradient(loss, logits[keep], soft[keep]), expected, dtype)


@pytest.mark.parametrize("name", ["rda", "nlnl"])
def test_all_labels_at_once_need_no_square_of_the_classes(name):
    logits, sizes = torch.randn(3, 500), []

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            sizes.extend(t.numel() for t in (out if isinstance(out, tuple | list) else (out,)) if torch.is_tensor(t))
            return out

    with Sizes():
        pm.losses.get(name, label_smoothing=0.1)(logits, torch.tensor([0, 1, 2]))
    assert max(sizes) <= 2 * logits.numel()
