"""Sums of losses that were published as such, with the weights that were."""

import math

import pytest
import torch
from term_battery import every_check, mp, term, term_tester
from test_label_probability import agce, aul
from test_normalised import nce, nfl, nnce, nnfl

import postmax as pm
from postmax.errors import InputError
from postmax.losses.term import weighted_sum


def mae(p, y):
    return 1 - p[y]


def rce(p, y):
    return -mp.log(mp.mpf("1e-4")) * (1 - p[y])


def weighted(alpha, first, beta, second):
    return lambda p, y: mp.mpf(alpha) * first(p, y) + mp.mpf(beta) * second(p, y)


TESTERS = {
    "nce+rce": term_tester("nce+rce", weighted(10, nce, 0.1, rce), preset="cifar100"),
    "nce+mae": term_tester("nce+mae", weighted(1, nce, 1, mae)),
    "nfl+mae": term_tester("nfl+mae", weighted(1, nfl, 1, mae), preset="cifar10"),
    "nfl+rce": term_tester("nfl+rce", weighted(10, nfl, 0.1, rce), preset="cifar100"),
    "nce+ael": term_tester("nce+ael", weighted(1, nce, 4, lambda p, y: mp.exp(-p[y] / 5)), preset="cifar10"),
    "nce+agce": term_tester("nce+agce", weighted(10, nce, 0.1, lambda p, y: agce(p[y], 1.8, 3)), preset="cifar100"),
    "nce+aul": term_tester("nce+aul", weighted(10, nce, 0.015, lambda p, y: aul(p[y], 6, 3)), preset="cifar100"),
    "anl-ce": term_tester("anl-ce", weighted(5, nce, 5, nnce)),
    "anl-fl": term_tester("anl-fl", weighted(10, nfl, 1, nnfl), preset="cifar100"),
    "sce": term_tester("sce", weighted(0.1, lambda p, y: -mp.log(p[y]), 1, rce)),
}


@every_check(TESTERS, compiled={"nce+rce", "anl-fl"})
def test_battery(name, check):
    getattr(TESTERS[name], check)()


def test_weights_are_those_of_cifar10_unless_given():
    for name in ("anl-ce", "anl-fl", "sce"):
        assert term(name) == term(name, preset="cifar10")
        (_, first), (weight, second) = term(name, alpha=2).terms
        assert term(name, alpha=2) == weighted_sum((2, first), (weight, second))
    assert term("symmetric-cross-entropy", beta=3).terms[1] == (3, term("rce"))
    assert term("nce+rce", alpha=10, beta=0.1).terms[0] == (10.0, term("nce"))


def test_options_reach_the_parts():
    assert pm.losses.option_names("anl-fl")[:4] == ("alpha", "beta", "gamma", "floor")
    (_, active), (_, negative) = term("anl-fl", gamma=2).terms
    assert active.gamma == negative.gamma == 2
    with pytest.raises(InputError, match=r"unknown option of the loss sce 'alfa'\. Did you mean 'alpha'"):
        pm.losses.get("sce", alfa=1)


def test_training_goes_with_the_settings():
    for name, preset, l1 in (("anl-ce", "cifar10", 5e-5), ("anl-fl", "cifar100", 5e-7), ("anl-ce", "webvision", 5e-6)):
        assert pm.losses.preset(name, preset).training == {"l1": l1, "weight_decay": 0.0}
    assert "ALFs" in pm.losses.preset("nce+rce", "cifar100").source


NOISE = pm.Transition([[0.7, 0.2, 0.1], [0.0, 0.8, 0.2], [0.3, 0.0, 0.7]])
LOGITS = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, 0])


@pytest.mark.parametrize("name", ["reweighting", "unbiased", "bi-tempered", "logit-clip"])
def test_logits_mean_what_they_mean_to_the_part_that_knows(name):
    alone, nce, ce = (pm.losses.get(each, transition=NOISE) for each in (name, "nce", "ce"))
    for loss in (nce + alone, alone + nce, 2 * alone + ce, alone * 2 + ce):
        assert torch.equal(loss.posterior(LOGITS), alone.posterior(LOGITS))
        assert torch.equal(loss.label_posterior(LOGITS), alone.label_posterior(LOGITS))
        assert loss.transition is alone.transition
    assert not torch.equal(alone.label_posterior(LOGITS), LOGITS.softmax(1))


def test_parts_to_which_logits_mean_different_things_are_refused():
    same = [pm.losses.get(name, transition=NOISE) for name in ("reweighting", "unbiased", "forward")]
    assert torch.equal((same[0] + same[1]).label_posterior(LOGITS), same[0].label_posterior(LOGITS))
    torch.testing.assert_close((same[0] + same[2]).label_posterior(LOGITS), same[0].label_posterior(LOGITS))
    for other in (
        pm.losses.get("unbiased", transition=pm.Transition.symmetric(3, 0.2)),
        pm.losses.get("bi-tempered"),
        pm.losses.get("logit-clip"),
        pm.losses.get("fpml"),
    ):
        with pytest.raises(InputError, match="the same logits have different meanings"):
            same[0] + other


def test_sums_that_do_not_change_stay_themselves():
    loss = pm.losses.get("nce+mae")
    assert loss.at(0.3) is loss
    changing = pm.losses.get("nce") + pm.losses.get("peer")
    assert changing.at(1) is changing
    assert changing.at(0).term == weighted_sum((1, term("nce")), (1, term("ce")))


@pytest.mark.parametrize("name", ["nce+peer", "peer+nce", "rda+mae", "cores + nce", "sce+mae"])
def test_weights_are_not_mistaken_for_options_of_a_part(name):
    with pytest.raises(InputError, match=r"alpha and beta are the weights of a sum, .* Use 2 \* pm\.losses\.get\("):
        pm.losses.get(name, alpha=2)


@pytest.mark.parametrize("weight", ["abc", None, [1.0], math.nan, math.inf, True, -1])
@pytest.mark.parametrize("option", ["alpha", "beta"])
def test_weights_are_numbers(option, weight):
    with pytest.raises(InputError, match=f"{option} is the weight of a part, a finite number ≥ 0, got"):
        pm.losses.get("nce+rce", **{option: weight})


def test_roles_are_those_of_the_literature():
    roles = {name: pm.losses.describe(name).role for name in ("ce", "nce", "mae", "rce", "aul", "nce+mae", "nce+gce")}
    assert roles == {
        **dict.fromkeys(("ce", "nce", "aul", "nce+gce"), "active"),
        **dict.fromkeys(("mae", "rce"), "passive"),
        "nce+mae": "both",
    }


def test_sums_of_ones_own_need_what_their_parts_need():
    assert pm.losses.describe("nce+reweighting").needs == "the transition matrix"
    assert pm.losses.describe("nce+gce").needs == "nothing"
    assert pm.losses.get("nce+reweighting", transition=NOISE).label_posterior(LOGITS).shape == (4, 3)
