"""Losses by name."""

import re

import pytest
import torch
from torch.nn import functional as F

import postmax as pm
from postmax import costs, losses
from postmax.errors import InputError
from postmax.losses import catalogue
from postmax.registry import Registry

LOGITS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, 0, 1, 2])
NOISE = pm.Transition.symmetric(3, 0.2)


def test_names():
    assert {"fpml", "ce"} <= set(losses.names())
    assert all(losses.summary(name) for name in losses.names())


@pytest.mark.parametrize("alias", ["fpml", "pml", "FPML", "f-pml"])
def test_fpml_by_its_names(alias):
    for chosen in ({}, {"divergence": "sl"}, {"divergence": "kl", "link": "softmax", "label_smoothing": 0.1}):
        found = losses.get(alias, **chosen)
        assert torch.equal(found(LOGITS, LABELS), pm.FPMLLoss(**chosen)(LOGITS, LABELS))


@pytest.mark.parametrize("alias", ["ce", "cross-entropy", "Cross Entropy", "cross_entropy"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy(alias, reduction, smoothing):
    weight = torch.tensor([1.0, 2.0, 0.5])
    found = losses.get(alias, reduction=reduction, label_smoothing=smoothing, weight=weight)
    expected = F.cross_entropy(LOGITS, LABELS, weight, reduction=reduction, label_smoothing=smoothing)
    torch.testing.assert_close(found(LOGITS, LABELS), expected)
    torch.testing.assert_close(found.posterior(LOGITS), LOGITS.softmax(1))
    assert torch.equal(found.predict(LOGITS), LOGITS.argmax(1))


@pytest.mark.parametrize("correction", ["forward", "objective", "posterior", "factored"])
def test_corrections_get_the_noise(correction):
    found = losses.get("fpml", transition=NOISE, correction=correction, divergence="sl")
    expected = pm.FPMLLoss("sl", transition=NOISE, correction=correction)
    assert torch.equal(found(LOGITS, LABELS), expected(LOGITS, LABELS))
    with pytest.raises(InputError, match=f"the loss fpml with correction='{correction}' needs the label noise"):
        losses.get("fpml", correction=correction)


@pytest.mark.parametrize("name", ["fpml", "ce"])
def test_losses_that_do_not_use_the_noise_pass_over_it(name):
    assert torch.equal(losses.get(name, transition=NOISE)(LOGITS, LABELS), losses.get(name)(LOGITS, LABELS))
    assert torch.equal(losses.get("fpml", correction=None)(LOGITS, LABELS), losses.get("fpml")(LOGITS, LABELS))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("fmpl", {}, "unknown loss 'fmpl'. Did you mean 'fpml'? Known: "),
        ("", {}, "unknown loss ''."),
        ("fpml", {"divergense": "sl"}, "unknown option of the loss fpml 'divergense'. Did you mean 'divergence'?"),
        (
            "ce",
            {"label_smothing": 0.1},
            "unknown option of the loss ce 'label_smothing'. Did you mean 'label_smoothing'?",
        ),
        ("ce", {"correction": "forward"}, "unknown option of the loss ce 'correction'."),
        ("fpml", {"divergence": "slx"}, "unknown divergence 'slx'. Did you mean 'sl'?"),
        ("fpml", {"transition": NOISE, "correction": "backward"}, "unknown correction 'backward'"),
        ("ce", {"label_smoothing": 2}, "label_smoothing"),
        ("ce", {"reduction": "median"}, "reduction"),
        (5, {}, "unknown loss 5."),
        (None, {}, "unknown loss None."),
        ("gce", {"preset": 5}, "unknown preset 5."),
        ("nce+dmi", {}, "dmi is no cost, and only costs can be added: nce+dmi."),
        ("nce + f-pml", {}, "f-pml is no cost, and only costs can be added"),
        ("nce+gcee", {}, "unknown loss 'gcee'. Did you mean 'gce'?"),
        ("unbiased", {"transition": NOISE, "base": "unbiased"}, 'base=pm.costs.get("unbiased", transition=…)'),
    ],
)
def test_what_nobody_knows(name, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        losses.get(name, **options)


def test_options_do_not_offer_what_is_given_otherwise():
    with pytest.raises(InputError) as caught:
        losses.get("fpml", nonsense=1)
    assert "divergence" in str(caught.value)
    assert "transition" not in str(caught.value)


def test_a_loss_nobody_has_a_line_about():
    with pytest.raises(InputError, match=r"unknown loss 'cee'. Did you mean 'ce'"):
        losses.summary("cee")


def test_a_loss_of_ones_own(monkeypatch):
    monkeypatch.setattr(catalogue, "_LOSSES", Registry("loss"))
    losses.register("mine", lambda *, alpha=1.0: ("mine", alpha), "of my own", aliases=("my loss",))
    assert losses.get("My-Loss", alpha=3) == ("mine", 3)
    assert losses.names() == ("mine", *costs.names())
    with pytest.raises(InputError, match="taken"):
        losses.register("myloss", lambda: None, "again")


@pytest.mark.parametrize("name", ["kl-pml", "gan-pml", "sl-pml", "js-pml"])
def test_facts_of_fpml(name):
    far = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0]], dtype=torch.float64)
    found = losses.get(name, reduction="none")(far, torch.tensor([0, 0]))
    assert losses.describe(name).bounded == bool(found.abs().max() < 150)


@pytest.mark.parametrize("name", ["fpml", "dmi", "forward", "sl-pml"])
def test_losses_without_published_settings(name):
    with pytest.raises(InputError, match=f"{name} has no published settings by data set"):
        losses.preset(name, "cifar10")


@pytest.mark.parametrize("name", ["ce", "nce+rce", "fpml", "kl-pml", "dmi", "forward", "backward", "unbiased"])
def test_number_of_classes_is_checked(name):
    for wrong in ("x", -3, 1, True, 3.0):
        with pytest.raises(InputError, match=f"num_classes must be an integer of at least 2, got {wrong!r}"):
            losses.get(name, transition=NOISE, num_classes=wrong)
    loss = losses.get(name, transition=NOISE, num_classes=3)
    assert loss(LOGITS, LABELS).isfinite()
    for read in (lambda z: loss(z, LABELS % 2), loss.posterior, loss.predict):
        with pytest.raises(InputError, match="have 2 classes; the loss was made for 3"):
            read(LOGITS[:, :2])


def test_number_of_classes_fits_the_noise():
    for name in ("forward", "unbiased"):
        with pytest.raises(
            InputError, match="num_classes is 4, but the transition matrix or the prior of the loss has 3"
        ):
            losses.get(name, transition=NOISE, num_classes=4)


def test_every_loss_knows_what_it_is_later_in_the_training():
    noise = pm.Transition.symmetric(2, 0.2)
    for name in losses.names():
        loss = losses.get(name, transition=noise)
        assert isinstance(loss.at(0.3), torch.nn.Module)
        for share in (3, -0.1, float("nan"), "half", True):
            with pytest.raises(InputError, match=r"at\(share\) takes the share of the training that is over"):
                loss.at(share)
