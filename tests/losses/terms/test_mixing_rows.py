"""Losses that mix rows: a label is compared with the labels of other rows."""

import pytest
import torch
from loss_tester import EXTREME, INDEPENDENT_ROWS, close, value_and_gradient
from term_battery import every_check, mp, term, term_tester

import postmax as pm
from postmax.errors import InputError
from postmax.losses.terms.f_div import NAMES, rising_pair

LOG_2 = mp.log(2)
LOGITS = 2 * torch.randn(7, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.tensor([0, 1, 2, 2, 1, 0, 2])

# g and f*(g), as published.
PAIRS = {
    "tv": (lambda p: mp.tanh(p) / 2, lambda p: mp.tanh(p) / 2),
    "js": (lambda p: LOG_2 - mp.log(1 + mp.exp(-p)), lambda p: p + mp.log(1 + mp.exp(-p)) - LOG_2),
    "kl": (lambda p: p, lambda p: mp.exp(p - 1)),
    "pearson": (lambda p: p, lambda p: p**2 / 4 + p),
    "jeffrey": (lambda p: p, lambda p: p + p**2 / 4 + p**3 / 16),
    "rkl": (lambda p: -mp.exp(p), lambda p: -1 - p),
    "hellinger": (lambda p: 1 - mp.exp(p), lambda p: (1 - mp.exp(p)) / mp.exp(p)),
    "neyman": (lambda p: 1 - mp.exp(p), lambda p: 2 - 2 * mp.sqrt(1 - p)),
}


def peer(p, y, others):
    return -mp.log(p[y]) + sum(share * mp.log(x) for share, x in zip(others, p, strict=True))


def f_div(divergence):
    g, conjugate = PAIRS[divergence]

    def loss(p, y, others):
        return -g(p[y]) + sum(share * conjugate(min(x, mp.mpf(1))) for share, x in zip(others, p, strict=True))

    return loss


TESTERS = {"peer": term_tester("peer", peer), "f-div": term_tester("f-div", f_div("tv"))}
OTHER_DIVERGENCES = {
    f"f-div {name}": term_tester("f-div", f_div(name), divergence=name) for name in PAIRS if name != "tv"
}
ALL = TESTERS | OTHER_DIVERGENCES
# In this one all rows have the same label, and the reward of a row cancels the penalty of the others: see below.
SAME_LABELS = "check_small_gradients_of_confident_mistakes"
COMPUTING = ("check_value_against_naive_loop", "check_first_derivatives", "check_second_derivatives")


@every_check(TESTERS, compiled={"peer"}, without={*INDEPENDENT_ROWS, SAME_LABELS})
def test_battery(name, check):
    getattr(TESTERS[name], check)()


@pytest.mark.parametrize("check", [*COMPUTING, "check_low_precision", "check_ignored_rows_may_hold_anything"])
@pytest.mark.parametrize("name", OTHER_DIVERGENCES)
def test_other_divergences(name, check):
    getattr(OTHER_DIVERGENCES[name], check)()


@pytest.mark.parametrize("name", ALL)
def test_small_gradients_of_confident_mistakes(name):
    logits = torch.tensor([[-m, 0.0, 0.5] for m in (10.0, 20.0, 50.0, 80.0)] * 2)
    loss, labels = ALL[name].make(reduction="sum"), torch.tensor([0, 0, 0, 0, 1, 2, 1, 1])
    gradient, exact = (value_and_gradient(loss, z, labels)[1] for z in (logits, logits.double()))
    close(gradient, exact.float(), torch.float32, atol=1e-37)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_logits_among_other_labels(name, dtype):
    loss = ALL[name].make(reduction="none")
    logits, labels = EXTREME.to(dtype), torch.arange(len(EXTREME)) % 3
    value, gradient = value_and_gradient(loss, logits, labels)
    close(value, ALL[name].naive(logits.double(), labels, reduction="none").to(dtype), dtype)
    close(gradient, value_and_gradient(loss, logits.double(), labels)[1].to(dtype), dtype)


def test_peer_loss_is_the_mean_over_all_pairs():
    log_p = LOGITS.log_softmax(1)
    pairs = [log_p[i, LABELS[j]] for i in range(7) for j in range(7) if i != j]
    expected = -log_p[range(7), LABELS].mean() + 0.5 * torch.stack(pairs).mean()
    torch.testing.assert_close(pm.losses.get("peer", alpha=0.5)(LOGITS, LABELS), expected)


@pytest.mark.parametrize("name", ["peer", "f-div"])
def test_ignored_rows_are_not_peers(name):
    labels = torch.where(LABELS == 1, -100, LABELS)
    loss = pm.losses.get(name)
    assert loss.mixes_rows
    value, gradient = value_and_gradient(loss, LOGITS, labels)
    expected = value_and_gradient(loss, LOGITS[LABELS != 1], LABELS[LABELS != 1])
    torch.testing.assert_close((value, gradient[LABELS != 1]), expected)
    assert not gradient[LABELS == 1].any()


@pytest.mark.parametrize("name", ["peer", "f-div"])
def test_rows_without_any_label_are_not_peers(name):
    q = LOGITS.flip(0).softmax(1)
    q[2:4] = 0.0
    kept = q.sum(1) > 0
    loss = pm.losses.get(name, reduction="none")
    value, gradient = value_and_gradient(loss, LOGITS, q)
    expected = value_and_gradient(loss, LOGITS[kept], q[kept])
    torch.testing.assert_close((value[kept], gradient[kept]), expected)
    assert not value[~kept].any()
    assert not gradient[~kept].any()
    assert not loss(LOGITS, torch.zeros_like(q)).any()


def test_a_row_alone_has_no_peers():
    torch.testing.assert_close(
        pm.losses.get("peer")(LOGITS[:1], LABELS[:1]), pm.losses.get("ce")(LOGITS[:1], LABELS[:1])
    )


def test_peer_loss_on_the_way():
    loss = pm.losses.get("peer", alpha=2)
    assert loss.at(0).term == loss.at(0.1).term == term("ce")
    assert not loss.at(0).mixes_rows
    assert loss.at(0.25).term.alpha == pytest.approx(1)
    assert loss.at(0.4) is loss.at(1) is loss
    assert pm.losses.get("peer", ramp=[0, 0]).at(0).term == term("peer", ramp=(0, 0))


def test_f_div_starts_from_cross_entropy():
    loss = pm.losses.get("f-div", divergence="js")
    assert loss.at(0.49).term == term("ce")
    assert loss.at(0.5) is loss


# f of each divergence; the largest of t·u − f(u) over u is the conjugate, up to what its docstring says.
GENERATORS = {
    "tv": lambda u: abs(u - 1) / 2,
    "js": lambda u: u * mp.log(u) - (u + 1) * mp.log((u + 1) / 2),
    "kl": lambda u: u * mp.log(u),
    "pearson": lambda u: (u - 1) ** 2,
    "jeffrey": lambda u: (u - 1) * mp.log(u),
    "rkl": lambda u: -mp.log(u),
    "hellinger": lambda u: (mp.sqrt(u) - 1) ** 2,
    "neyman": lambda u: (1 - u) ** 2 / u,
}


def conjugate(f, t):
    """By ternary search of a concave function on a logarithmic scale."""
    low, high = mp.mpf(-12), mp.mpf(12)
    for _ in range(120):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if t * mp.exp(a) - f(mp.exp(a)) < t * mp.exp(b) - f(mp.exp(b)):
            low = a
        else:
            high = b
    return t * mp.exp(low) - f(mp.exp(low))


@pytest.mark.parametrize("name", GENERATORS)
def test_which_published_pairs_are_conjugate(name):
    g, published = PAIRS[name]
    gap = max(abs(conjugate(GENERATORS[name], g(p)) - published(p)) for p in (mp.mpf(0.25), mp.mpf(0.75)))
    assert (gap < 1e-9) == (name not in {"jeffrey", "neyman"})
    if name == "jeffrey":  # the third order of a series
        small = mp.mpf("1e-3")
        assert abs(conjugate(GENERATORS[name], small) - published(small)) < small**3 / 100


@pytest.mark.parametrize("divergence", [name for name in GENERATORS if name != "jeffrey"])
def test_a_rising_pair_is_a_reward_and_its_conjugate(divergence):
    for p in (0.25, 0.75):
        reward, penalty = (float(part(torch.tensor(p, dtype=torch.float64))) for part in rising_pair(divergence))
        assert penalty == pytest.approx(float(conjugate(GENERATORS[divergence], mp.mpf(reward))), abs=1e-7)


@pytest.mark.parametrize("divergence", NAMES)
def test_the_reward_of_a_rising_pair_rises(divergence):
    p = torch.linspace(0, 1, 101, dtype=torch.float64)
    reward, penalty = rising_pair(divergence)
    assert (reward(p).diff() > 0).all()
    assert (penalty(p).diff() > 0).all()
    if divergence in ("tv", "js", "kl", "pearson", "jeffrey"):  # the published formulas
        g, conjugate = PAIRS[divergence]
        for value in (0.0, 0.3, 1.0):
            x = torch.tensor(value, dtype=torch.float64)
            assert float(reward(x)) == pytest.approx(float(g(mp.mpf(value))), abs=1e-12)
            assert float(penalty(x)) == pytest.approx(float(conjugate(mp.mpf(value))), abs=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_which_published_divergences_teach_the_label(name):
    logits = torch.zeros(6, 3, dtype=torch.float64)
    labels = torch.arange(6) % 3
    gradient = value_and_gradient(pm.losses.get("f-div", divergence=name), logits, labels)[1]
    taught = gradient.gather(1, labels[:, None]) < 0
    assert taught.all() if name not in {"rkl", "hellinger", "neyman"} else not taught.any()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("peer", {"alpha": -1}, "alpha must be a positive number"),
        ("peer", {"ramp": (0.5,)}, "ramp is two shares of the training"),
        ("f-div", {"divergence": "tvv"}, "unknown divergence of f-div 'tvv'. Did you mean 'tv'"),
        ("f-div", {"start": -0.1}, "start is a share of the training"),
    ],
)
def test_options_that_make_no_sense(name, options, message):
    with pytest.raises(InputError, match=message):
        pm.losses.get(name, **options)
