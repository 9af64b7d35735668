"""What a divergence promises beyond its digits: Fenchel duality, slopes, names, and a user's own f."""

import copy
import math
import pickle

import pytest
import torch
from finite_problem import DIVERGENCES
from torch.testing import assert_close

import postmax as pm
from postmax import divergences
from postmax.divergences.elementwise import elementwise_derivative
from postmax.errors import InputError

U = torch.logspace(-3, 3, 61, dtype=torch.float64)
S = U.log()
TEMPERED = [f"{name}@0.1" for name in ("rkl", "neyman", "sl", "pearson")]


def get(name):
    base, _, floor = name.partition("@")
    divergence = divergences.get(base)
    return divergence.tempered(float(floor)) if floor else divergence


everyone = pytest.mark.parametrize("d", [get(n) for n in DIVERGENCES + TEMPERED], ids=DIVERGENCES + TEMPERED)


@everyone
def test_fenchel_equality(d):
    """f*(f'(u)) = u·f'(u) − f(u)."""
    t = d.f_prime(U)
    assert_close(d.conjugate(t), U * t - d.f(U), rtol=1e-9, atol=1e-9)


@everyone
def test_fenchel_inequality(d):
    """f*(t) ≥ ut − f(u) for every pair, so the conjugate is a supremum."""
    t = d.f_prime(U)
    gap = d.conjugate(t)[:, None] - (t[:, None] * U[None, :] - d.f(U)[None, :])
    assert (gap >= -1e-9 * (1 + (t[:, None] * U[None, :]).abs())).all()


@everyone
def test_f_prime_is_the_derivative_of_f(d):
    assert_close(d.f_prime(U), elementwise_derivative(d.f)(U), rtol=1e-8, atol=1e-10)


@everyone
def test_conjugate_prime_inverts_f_prime(d):
    assert_close(d.conjugate_prime(d.f_prime(U)), U, rtol=1e-6, atol=0)


@everyone
def test_conjugate_second_is_positive_and_reciprocal_to_f_second(d):
    f_second = elementwise_derivative(elementwise_derivative(d.f))
    second = d.conjugate_second(d.f_prime(U))
    assert (second > 0).all()
    assert_close(second, 1 / f_second(U), rtol=1e-5, atol=0)


@everyone
def test_slopes_are_the_derivatives(d):
    assert_close(d.score_slope(S), elementwise_derivative(d.score)(S), rtol=1e-7, atol=1e-12)
    assert_close(d.penalty_slope(S), elementwise_derivative(d.penalty)(S), rtol=1e-7, atol=1e-12)
    at_zero = torch.zeros(1, dtype=torch.float64)  # a kink would hide here
    assert_close(d.score_slope(at_zero), elementwise_derivative(d.score)(at_zero))
    assert_close(d.penalty_slope(at_zero), elementwise_derivative(d.penalty)(at_zero))


@everyone
def test_scores_fill_the_domain(d):
    """Increasing from one end of the domain to the other: reached to 1e-6 where finite, growing on where not."""
    t = d.score(torch.linspace(-15, 15, 61, dtype=torch.float64))
    assert (t.diff() >= 0).all()
    for end, s in zip(d.domain, (-80.0, 80.0), strict=True):
        halfway, reached = d.score(torch.tensor([s / 2, s], dtype=torch.float64)).tolist()
        if math.isfinite(end):
            assert reached == pytest.approx(end, abs=1e-6)
        else:
            assert reached / halfway > 1.5
            assert math.copysign(1, end) == math.copysign(1, reached)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(7, 10), (600, 1003), (3, 5, 20000)])
@pytest.mark.parametrize("name", ["kl", "gan", "js", "sl", "sl:2"])
def test_joint_sum_and_slope_equal_the_separate_ones(name, shape, dtype):
    """The hot path merges logarithms and works in blocks; here it meets the plain sum on large and odd shapes."""
    d = divergences.get(name)
    s = 4 * torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(0)) - 8
    total, slope = d.penalty_sum_and_slope(s)
    exact = d.penalty(s.double()).sum(-1)
    assert_close(total.double(), exact, rtol=30 * torch.finfo(dtype).eps, atol=1e3 * torch.finfo(dtype).eps)
    assert_close(slope, d.penalty_slope(s), rtol=1e-5, atol=1e-30)


def test_merged_logarithms_keep_what_a_plain_product_would_lose():
    """21 841 classes of probability 1e-9 weigh 2e-5 together, though 1 − 1e-9 is 1 in float32."""
    s = torch.full((64, 21841), math.log(1e-9))
    total, _ = divergences.get("gan").penalty_sum_and_slope(s)
    assert_close(total, torch.full((64,), 21841e-9), rtol=1e-5, atol=0)


def test_families_meet_their_members():
    pairs = [("alpha:2", "pearson", 2), ("alpha:-1", "neyman", 2), ("alpha:0.5", "hellinger", 0.5)]
    for family, member, factor in pairs:
        a, b = divergences.get(family), divergences.get(member)
        assert_close(b.score_slope(S), factor * a.score_slope(S))
        assert_close(b.penalty_slope(S), factor * a.penalty_slope(S))
    for family, member in [("alpha:1", "kl"), ("alpha:0", "rkl"), ("sl:1", "sl"), ("js", "gan")]:
        assert_close(divergences.get(family).score_slope(S), divergences.get(member).score_slope(S))


def test_own_divergence_matches_the_closed_form():
    mine = divergences.Divergence(f=lambda u: u * u.log(), name="mine")
    kl = divergences.get("kl")
    for quantity in ("score", "penalty", "score_slope", "penalty_slope"):
        assert_close(getattr(mine, quantity)(S), getattr(kl, quantity)(S), rtol=1e-9, atol=1e-12)
    assert_close(mine.conjugate(torch.tensor([0.5], dtype=torch.float64)), torch.tensor([-0.5]).double().exp())


def cubic(u):
    return u**3


def test_own_divergence_pickles_with_a_function_that_does():
    mine = pickle.loads(pickle.dumps(divergences.Divergence(f=cubic, name="cubic", domain=(0.0, math.inf))))
    assert_close(mine.score(S), 3 * U**2)
    assert mine.domain == (0.0, math.inf)


@pytest.mark.parametrize("f", [lambda u: u * u.log(), cubic, lambda u: -u.log(), lambda u: -(u + 1).log()])
@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_own_divergence_survives_any_logits(f, link):
    loss = pm.FPMLLoss(divergences.Divergence(f=f, name="mine"), link, reduction="none")
    rows = [[100.0, 0.0, 0.0], [-100.0, 3.0, 0.0], [-1e4, 1e4, 0.0], [1e4, -1e4, -200.0]]
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        z = torch.tensor(rows, dtype=dtype, requires_grad=True)
        value = loss(z, torch.zeros(4, dtype=torch.int64))
        (gradient,) = torch.autograd.grad(value.sum(), z)
        assert value.isfinite().all()
        assert gradient.isfinite().all()


def test_own_divergence_trains_compiles_and_maps():
    mine = divergences.Divergence(f=lambda u: u**1.5, name="mine")
    loss = pm.FPMLLoss(mine)
    z = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0, 1, 2, 0, 1])
    assert torch.autograd.gradcheck(lambda z: loss(z, y), z, check_forward_ad=True)
    assert_close(torch.compile(loss, fullgraph=True, backend="aot_eager")(z, y), loss(z, y))
    per_row = torch.func.vmap(torch.func.grad(loss))(z.detach(), y)
    assert_close(per_row.mean(0), torch.autograd.grad(loss(z, y), z)[0].sum(0))


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda u: (u - 1).abs() / 2, "strictly convex"),
        (lambda u: -u * u, "strictly convex"),
        (lambda u: 3 * u, "strictly convex"),
        (lambda u: u.sum() * u.new_ones(3), "elementwise"),
        (lambda u: u.numpy(), "could not be evaluated"),
    ],
)
def test_own_divergence_refused(f, words):
    with pytest.raises(InputError, match=words):
        divergences.Divergence(f=f, name="bad")


@pytest.mark.parametrize("name", ["tv", "TV", "total variation", "Total_Variation"])
def test_total_variation_refused_with_the_reason(name):
    with pytest.raises(InputError, match="not strictly convex"):
        divergences.get(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gna", "Did you mean 'gan'"),
        ("helinger", "Did you mean 'hellinger'"),
        ("zzzz", "Known: "),
        ("kl:2", "takes no parameter"),
        ("alpha:x", "must be a number"),
        ("sl:-1", "0 < k"),
        ("alpha:nan", "finite"),
        (3, "expected a Divergence or its name"),
    ],
)
def test_unknown_names(name, words):
    with pytest.raises(InputError, match=words):
        divergences.get(name)


@everyone
def test_pickle_and_copy(d):
    for twin in (pickle.loads(pickle.dumps(d)), copy.deepcopy(d)):
        assert twin.name == d.name
        assert_close(twin.score(S), d.score(S))


def test_tempered_bounds_slopes_and_leaves_the_rest():
    base, tame = divergences.get("neyman"), divergences.get("neyman").tempered(0.1)
    above = torch.tensor([0.1001, 0.5, 1.0, 3.0], dtype=torch.float64).log()
    assert_close(tame.score_slope(above) * 200, base.score_slope(above), rtol=1e-6, atol=0)
    below = torch.linspace(-1e4, math.log(0.1), 50, dtype=torch.float64)
    assert_close(tame.score_slope(below), torch.ones_like(below))
    with pytest.raises(InputError, match="floor"):
        base.tempered(1.5)
