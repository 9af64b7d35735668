"""Links: accurate everywhere, increasing, and f-GAN's g_f where the paper uses it."""

import mpmath
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import postmax as pm
from postmax import links

mp = mpmath.mp.clone()
mp.dps = 60
LOGITS = [-1e4, -500.0, -100.0, -30.0, -10.001, -10.0, -9.999, -1.0, -1e-3, 0.0, 1e-3, 1.0, 10.0, 30.0, 100.0, 1e4]

# Elementwise links in mpmath: log D and its derivative.
EXACT = {
    "exp": (lambda z: z, lambda z: mp.mpf(1)),
    "softplus": (
        lambda z: mp.log(mp.log1p(mp.exp(z))),
        lambda z: 1 / ((1 + mp.exp(-z)) * mp.log1p(mp.exp(z))),
    ),
    "sigmoid": (lambda z: -mp.log1p(mp.exp(-z)), lambda z: 1 / (1 + mp.exp(z))),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", EXACT)
def test_value_and_gradient_against_fifty_digits(name, dtype):
    z = torch.tensor(LOGITS, dtype=dtype, requires_grad=True)
    s = links.get(name).log_ratio(z)
    (gradient,) = torch.autograd.grad(s.sum(), z)
    value, slope = EXACT[name]
    rtol, tiny = 20 * torch.finfo(dtype).eps, torch.finfo(dtype).tiny
    for z_i, s_i, g_i in zip(z.tolist(), s.tolist(), gradient.tolist(), strict=True):
        assert s_i == pytest.approx(float(value(mp.mpf(z_i))), rel=rtol, abs=tiny)
        assert g_i == pytest.approx(float(slope(mp.mpf(z_i))), rel=rtol, abs=tiny)


def test_softmax_is_log_softmax_over_the_last_dimension():
    z = torch.randn(2, 3, 5)
    assert_close(links.get("softmax").log_ratio(z), z.log_softmax(-1))


@pytest.mark.parametrize("name", links.names())
def test_links_are_increasing_so_argmax_is_the_prediction(name):
    z = 4 * torch.randn(200, 6, generator=torch.Generator().manual_seed(0))
    s = links.get(name).log_ratio(z)
    assert torch.equal(s.argsort(-1), z.argsort(-1))


@pytest.mark.parametrize("name", links.names())
def test_flags_say_what_the_link_does(name):
    link = links.get(name)
    d = link.log_ratio(5 * torch.randn(500, 4, generator=torch.Generator().manual_seed(0))).exp()
    assert bool((d <= 1).all()) == link.gives_probabilities
    assert torch.allclose(d.sum(-1), torch.ones(500)) == link.normalised


# The output activations g_f of f-GAN, T = g_f(v), for the divergences of the paper, and the logit z that v is.
G_F = {
    "kl": (lambda v: v, lambda v: v - 1),
    "gan": (lambda v: -(1 + (-v).exp()).log(), lambda v: v),
    "sl": (lambda v: -1 / (1 + v.exp()), lambda v: v),
    "js": (lambda v: torch.log(torch.tensor(2.0)) - (1 + (-v).exp()).log(), lambda v: v),
}


@pytest.mark.parametrize("name", G_F)
def test_exp_link_is_f_gans_activation(name):
    v = torch.linspace(-6, 6, 49, dtype=torch.float64)
    g_f, logit = G_F[name]
    score = pm.divergences.get(name).score(links.get("exp").log_ratio(logit(v)))
    assert_close(score, g_f(v).double(), rtol=1e-7, atol=1e-7)


def test_change_of_variable_of_the_paper_is_the_softplus_link_for_kl():
    z = torch.randn(3, 4, dtype=torch.float64)
    labels = torch.tensor([0, 3, 1])
    d = F.softplus(z)
    by_hand = (d.sum(1) - (d.log() + 1).gather(1, labels[:, None]).squeeze(1)).mean()
    assert_close(pm.functional.fpml_loss(z, labels, "kl", "softplus"), by_hand)


def test_unknown_link_suggests_the_nearest():
    with pytest.raises(pm.InputError, match="Did you mean 'softmax'"):
        links.get("softmaks")
