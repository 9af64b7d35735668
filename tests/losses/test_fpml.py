"""FPMLLoss against the whole battery, for every divergence and every link."""

from functools import cache, partial
from itertools import product

import mpmath
import pytest
import torch
from loss_tester import EXTREME, LossTester

import postmax as pm

mp = mpmath.mp.clone()
mp.dps = 30

# name: (score, penalty), f'(u) and u·f'(u) − f(u) worked out by hand; mpmath neither overflows nor rounds noticeably.
SCORE_AND_PENALTY = {
    "kl": (lambda u: mp.log(u) + 1, lambda u: u),
    "gan": (lambda u: -mp.log1p(1 / u), mp.log1p),
    "sl": (lambda u: -1 / (1 + u), lambda u: mp.log1p(u) - u / (1 + u)),
    "js": (lambda u: mp.log(2) - mp.log1p(1 / u), lambda u: mp.log1p(u) - mp.log(2)),
    "rkl": (lambda u: -1 / u, lambda u: mp.log(u) - 1),
    "pearson": (lambda u: 2 * (u - 1), lambda u: u**2 - 1),
    "neyman": (lambda u: 1 - 1 / u**2, lambda u: 2 - 2 / u),
    "hellinger": (lambda u: 1 - 1 / mp.sqrt(u), lambda u: mp.sqrt(u) - 1),
    "jeffreys": (lambda u: mp.log(u) + 1 - 1 / u, lambda u: mp.log(u) + u - 1),
    "lecam": (lambda u: mp.mpf(0.5) - 2 / (1 + u) ** 2, lambda u: mp.mpf(1.5) - (2 + 4 * u) / (1 + u) ** 2),
    "alpha": (lambda u: 2 - 2 / mp.sqrt(u), lambda u: 2 * mp.sqrt(u) - 2),
}


def density_ratios(link, row, c):
    """D for a row of logits; a link that models probabilities models c·D."""
    e = [mp.exp(z) for z in row]
    return {
        "exp": lambda: e,
        "softmax": lambda: [x / sum(e) / c for x in e],
        "softplus": lambda: [mp.log1p(x) for x in e],
        "sigmoid": lambda: [x / (1 + x) / c for x in e],
    }[link]()


def battery(divergence, link, c=1.0):
    score, penalty = SCORE_AND_PENALTY[divergence]

    @cache
    def reference(row, label):
        u = density_ratios(link, row, c)
        return c * sum(map(penalty, u)) - score(u[label])

    chosen = {"divergence": divergence, "link": link, "passive_weight": c}
    return LossTester(partial(pm.FPMLLoss, **chosen), partial(pm.functional.fpml_loss, **chosen), reference)


def default_link(divergence):
    return pm.FPMLLoss(divergence).objective.link.name


DEFAULT = {(name, default_link(name)) for name in pm.divergences.names()}
STEEPEST = {(name, "exp") for name in pm.divergences.names()}
EVERY_LINK = set(product(("kl", "gan", "sl"), pm.links.names()))
WEIGHTED = {("kl", "softmax", 2.0), ("gan", "exp", 0.5), ("sl", "sigmoid", 2.0), ("pearson", "softmax", 0.5)}
TESTERS = {config: battery(*config) for config in sorted(DEFAULT | STEEPEST | EVERY_LINK | WEIGHTED)}

# Compiling takes the time: every divergence once, every link once. What no user gets by default is only computed.
COMPILED = DEFAULT | {("kl", link) for link in pm.links.names()}
ONLY_COMPUTED = STEEPEST - DEFAULT - EVERY_LINK
COMPUTING = {
    "check_value_against_naive_loop",
    "check_first_derivatives",
    "check_low_precision",
    "check_small_gradients_of_confident_mistakes",
    "check_extreme_logits",
    "check_large_batch",
}

KNOWN_BUGS = {
    "check_derivatives_at_zero_probability": (
        set(TESTERS),
        "BUG: the mixed second derivative by logits and probabilities is wrong where a probability is exactly 0",
    ),
    "check_weighted_per_sample_gradients": (
        set(TESTERS),
        "BUG: vmap over (C) logits with class weights and the mean fails in weight[labels]",
    ),
    "check_extreme_logits": (
        {("pearson", "exp"), ("neyman", "exp"), ("neyman", "sigmoid")},
        "BUG: ∞ − ∞ = NaN at the label where the exact loss and gradient are ±∞",
    ),
    "check_small_gradients_of_confident_mistakes": (
        {("neyman", "exp"), ("neyman", "sigmoid")},
        "BUG: ∞ − ∞ = NaN at the label where the exact gradient is −∞",
    ),
}


def runs(config, check):
    return (check != "check_compiled" or config in COMPILED) and (check in COMPUTING or config not in ONLY_COMPUTED)


def cases():
    for config, check in product(TESTERS, LossTester.checks()):
        if runs(config, check):
            configs, reason = KNOWN_BUGS.get(check, ((), ""))
            bug = pytest.mark.xfail(reason=reason, strict=True, raises=(AssertionError, RuntimeError))
            marks = [bug] if config in configs else []
            yield pytest.param(config, check, marks=marks, id="-".join(map(str, (*config, check))))


@pytest.mark.parametrize(("config", "check"), list(cases()))
def test_contract(config, check):
    getattr(TESTERS[config], check)()


def test_which_losses_are_truly_infinite_in_float32_for_logits_of_1e4():
    labels = torch.zeros(len(EXTREME), dtype=torch.int64)
    infinite = {c for c, t in TESTERS.items() if t.naive(EXTREME, labels, reduction="none").float().isinf().any()}
    unbounded_score = {"rkl", "neyman", "hellinger", "jeffreys", "alpha"}
    assert infinite == {
        (name, link)
        for name, link in DEFAULT | STEEPEST | EVERY_LINK
        if name in unbounded_score or (link == "exp" and name in {"kl", "pearson"})
    }


@pytest.mark.slow
@pytest.mark.parametrize("config", [("kl", "softmax"), ("gan", "exp"), ("sl", "sigmoid")], ids="-".join)
def test_inductor(config):
    TESTERS[config].check_compiled(backend="inductor")
