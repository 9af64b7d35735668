"""FPMLLoss against the whole battery, for every divergence with a formula below and every link."""

import subprocess
import sys
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


DEFAULT = {(name, default_link(name)) for name in SCORE_AND_PENALTY}
STEEPEST = {(name, "exp") for name in SCORE_AND_PENALTY}
EVERY_LINK = set(product(("kl", "gan", "sl"), pm.links.names()))
WEIGHTED = {("kl", "softmax", 2.0), ("gan", "exp", 0.5), ("sl", "sigmoid", 2.0), ("pearson", "softmax", 0.5)}
TESTERS = {config: battery(*config) for config in sorted(DEFAULT | STEEPEST | EVERY_LINK | WEIGHTED)}

# Compiling takes the time: every divergence once, every link once. What no user gets by default is only computed.
COMPILED = {
    "check_compiled": DEFAULT | {("kl", link) for link in pm.links.names()},
    "check_compiled_for_any_batch_size": {("kl", "softmax"), ("kl", "exp"), ("gan", "sigmoid"), ("sl", "sigmoid")},
}
ONLY_COMPUTED = STEEPEST - DEFAULT - EVERY_LINK
COMPUTING = {
    "check_value_against_naive_loop",
    "check_first_derivatives",
    "check_low_precision",
    "check_small_gradients_of_confident_mistakes",
    "check_extreme_logits",
    "check_large_batch",
}

# Score and penalty of the label both overflow, and the loss is NaN where it should be ∞; see docs/accuracy.md.
NAN_FOR_INFINITY = {
    "check_extreme_logits": {("pearson", "exp"), ("neyman", "exp"), ("neyman", "sigmoid")},
    "check_small_gradients_of_confident_mistakes": {("neyman", "exp"), ("neyman", "sigmoid")},
}
# The penalty of a class that has no probability is −∞ for these, by their formula.
INFINITE_IF_MASKED = {"jeffreys", "neyman", "rkl"}


def runs(config, check):
    if check == "check_masked_classes" and config[0] in INFINITE_IF_MASKED:
        return False
    return config in COMPILED.get(check, TESTERS) and (check in COMPUTING or config not in ONLY_COMPUTED)


def cases():
    for config, check in product(TESTERS, LossTester.checks()):
        if runs(config, check):
            overflow = pytest.mark.xfail(reason="∞ − ∞ where the exact loss is ∞", strict=True, raises=AssertionError)
            marks = [overflow] if config in NAN_FOR_INFINITY.get(check, ()) else []
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


@pytest.fixture(scope="module")
def inductor():
    """Skip where torch.compile cannot make machine code. It needs a C++ compiler that works."""
    program = "import torch; torch.compile(lambda x: x.exp())(torch.ones(2))"
    try:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("torch.compile does not come to an end on this machine")
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if "Error" in line] or [f"exit code {done.returncode}"]
        pytest.skip(f"torch.compile does not work on this machine: {reasons[-1].strip()}")


@pytest.mark.slow
@pytest.mark.usefixtures("inductor")
@pytest.mark.parametrize("config", [("kl", "softmax"), ("gan", "sigmoid")], ids="-".join)
def test_inductor(config):
    for dynamic in (False, True):
        TESTERS[config].check_compiled(backend="inductor", dynamic=dynamic)


CORRECTIONS = ("objective", "posterior", "forward", "factored")


def corrected(name, correction, **options):
    noise = pm.Transition([[0.7, 0.2, 0.1], [0.0, 0.8, 0.2], [0.3, 0.0, 0.7]])
    return pm.FPMLLoss(name, transition=noise, correction=correction, **options)


@pytest.mark.parametrize("name", ["kl", "sl", "neyman"])
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_corrections_differentiate_compile_and_map(name, correction):
    loss = corrected(name, correction)
    logits = torch.linspace(-2, 2, 12, dtype=torch.float64).reshape(4, 3).requires_grad_()
    labels = torch.tensor([0, 2, -100, 1])
    assert torch.autograd.gradcheck(loss, (logits, labels), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(loss, (logits, labels))
    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(logits, labels), loss(logits, labels))
    per_row = torch.func.vmap(torch.func.grad(loss))(logits.detach()[[0, 1, 3]], labels[[0, 1, 3]])
    (gradient,) = torch.autograd.grad(loss(logits, labels), logits)
    torch.testing.assert_close(per_row / 3, gradient[[0, 1, 3]])


# Where P has zeros PᵀD may be e^−20000: the forward correction is finite for scores that grow no faster than log D.
FINITE = [
    *product(["objective", "factored"], pm.divergences.names()),
    *product(["forward"], ["kl", "gan", "sl", "js", "lecam"]),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(("correction", "name"), FINITE)
def test_corrections_stay_finite_for_extreme_logits(name, correction, dtype):
    """Tempered and bounded below, the objective correction has no infinities left."""
    logits = EXTREME.to(dtype).requires_grad_()
    for label in range(3):
        value = corrected(name, correction, reduction="none")(logits, torch.full((len(EXTREME),), label))
        (gradient,) = torch.autograd.grad(value.sum(), logits)
        assert value.isfinite().all()
        assert gradient.isfinite().all()


@pytest.mark.parametrize("shape", [(3,), (5, 3), (5, 3, 2), (5, 3, 2, 4)])
@pytest.mark.parametrize("correction", [None, *CORRECTIONS])
def test_posterior_and_predict_keep_the_shape_of_the_logits(shape, correction):
    loss = pm.FPMLLoss("gan") if correction is None else corrected("gan", correction)
    logits = 5 * torch.randn(shape, generator=torch.Generator().manual_seed(0))
    dim = 0 if len(shape) == 1 else 1
    p = loss.posterior(logits)
    assert p.shape == logits.shape
    torch.testing.assert_close(p.sum(dim), torch.ones_like(p.sum(dim)))
    assert torch.equal(loss.predict(logits), p.argmax(dim))
    rows, flat = (t.movedim(dim, -1).reshape(-1, 3) for t in (logits, p))
    torch.testing.assert_close(torch.stack([loss.posterior(row) for row in rows]), flat)


@pytest.mark.parametrize("name", pm.divergences.names())
def test_posterior_of_extreme_logits_is_a_probability(name):
    for link in pm.links.names():
        p = pm.FPMLLoss(name, link).posterior(EXTREME.float())
        assert p.isfinite().all()
        torch.testing.assert_close(p.sum(1), torch.ones(len(p)))
