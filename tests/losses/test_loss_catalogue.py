"""Losses by name."""

import copy
import importlib
import re
import sys
from dataclasses import dataclass

import pytest
import torch
from torch.nn import functional as F

import postmax as pm
from postmax import losses
from postmax.errors import InputError
from postmax.losses import catalogue

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
        ("fpml", {"correction": "foward"}, "unknown correction 'foward'. Did you mean 'forward'?"),
        ("gan-pml", {"correction": "forward", "link": "sofmax"}, "unknown link 'sofmax'. Did you mean 'softmax'?"),
        ("unbiased", {"base": "cee"}, "unknown loss 'cee'. Did you mean 'ce'?"),
        ("fpml", {"correction": "forward", "floor": 2}, "needs the label noise"),
        ("ce", {"label_smoothing": 2}, "label_smoothing"),
        ("ce", {"reduction": "median"}, "reduction"),
        (5, {}, "unknown loss 5."),
        (None, {}, "unknown loss None."),
        ("gce", {"preset": 5}, "unknown preset 5."),
        ("nce+dmi", {}, "dmi cannot be part of a sum: it is one number for a whole batch"),
        ("nce + backward", {"transition": NOISE}, "the objective correction cannot be part of a sum"),
        ("nce+gcee", {}, "unknown loss 'gcee'. Did you mean 'gce'?"),
        ("unbiased", {"transition": NOISE, "base": "unbiased"}, 'base=pm.losses.get("unbiased", transition=…)'),
    ],
)
def test_unknown_names_and_options(name, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        losses.get(name, **options)


def test_options_do_not_offer_what_is_given_otherwise():
    with pytest.raises(InputError) as caught:
        losses.get("fpml", nonsense=1)
    assert "divergence" in str(caught.value)
    assert "transition" not in str(caught.value)


def test_a_summary_of_an_unknown_loss():
    with pytest.raises(InputError, match=r"unknown loss 'cee'. Did you mean 'ce'"):
        losses.summary("cee")


@pytest.fixture
def own_registry(monkeypatch):
    """What a test registers is forgotten after it."""
    losses.names()
    known = copy.copy(catalogue._LOSSES)
    for part in ("_values", "_names", "_owners", "_order"):
        setattr(known, part, dict(getattr(known, part)))
    monkeypatch.setattr(catalogue, "_LOSSES", known)


class Brier(losses.Loss):
    """(p − onehot)² with a factor: a whole loss of one's own."""

    def __init__(self, factor=1.0, *, reduction="mean"):
        super().__init__()
        self.factor, self.reduction = factor, reduction

    def forward(self, logits, target):
        rows = self.factor * (logits.softmax(1) - F.one_hot(target, logits.shape[1])).square().sum(1)
        return rows if self.reduction == "none" else rows.mean()

    def posterior(self, logits):
        return logits.softmax(1)


@dataclass(frozen=True)
class Squared(losses.Term):
    """(1 − p)² of the label's probability p: a term of one's own."""

    power: float = 1.0

    def __call__(self, inputs):
        return (1 - (self.power * inputs.label_log_p).exp()) ** 2


@pytest.mark.usefixtures("own_registry")
def test_a_loss_of_ones_own():
    losses.register("mine", Brier, "of my own", aliases=("my loss",))
    loss = losses.get("My-Loss", factor=3, reduction="none")
    expected = 3 * (LOGITS.softmax(1) - F.one_hot(LABELS, 3)).square().sum(1)
    torch.testing.assert_close(loss(LOGITS, LABELS), expected)
    assert "mine" in losses.names()
    assert losses.option_names("mine") == ("factor", "reduction")
    assert losses.describe("mine") is None
    assert not losses.needs_transition("mine", {})
    assert torch.equal(loss.predict(LOGITS), LOGITS.argmax(1))
    assert torch.equal(loss.label_posterior(LOGITS), LOGITS.softmax(1))
    assert (loss.at(0.5), loss.transition, loss.mixes_rows, loss.corrects_posterior) == (loss, None, False, False)
    with pytest.raises(InputError, match="taken"):
        losses.register("myloss", Brier, "again")
    with pytest.raises(InputError, match="unknown option of the loss mine 'weight'"):
        losses.get("mine", weight=torch.ones(3))
    with pytest.raises(InputError, match="the loss mine does not take num_classes"):
        losses.get("mine", num_classes=3)
    with pytest.raises(InputError, match="Brier cannot be part of a sum: it is not made of loss terms"):
        loss + losses.get("ce")
    with pytest.raises(InputError, match="Brier cannot be part of a sum"):
        losses.get("mine+ce")


@pytest.mark.usefixtures("own_registry")
def test_a_term_of_ones_own():
    losses.register("squared", Squared, "squared error", losses.Facts(False, True, "active", "me"))
    loss = losses.get("squared", power=0.5, label_smoothing=0.1, weight=torch.ones(3))
    assert repr(loss) == "TermLoss(Squared(power=0.5), label_smoothing=0.1)"
    both = losses.get("squared+ce", alpha=2, beta=3)
    expected = 2 * losses.get("squared")(LOGITS, LABELS) + 3 * losses.get("ce")(LOGITS, LABELS)
    torch.testing.assert_close(both(LOGITS, LABELS), expected)
    assert losses.describe("squared+ce").needs == "nothing"
    losses.register_sum("squared-ce", "a named sum", parts=("squared", "ce"), weights=(2.0, 3.0))
    assert torch.equal(losses.get("squared-ce")(LOGITS, LABELS), both(LOGITS, LABELS))
    with pytest.raises(InputError, match="does not name two losses"):
        losses.register_sum("squared-again", "a sum of what")


NEW_FILE = '''
from dataclasses import dataclass

from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.term import Term


@dataclass(frozen=True)
class Cubed(Term):
    """(1 − p)³ of the label's probability p."""

    def __call__(self, inputs):
        return (1 - inputs.label_log_p.exp()) ** 3


register("cubed", Cubed, "cubed error", Facts(symmetric=False, bounded=True, role="active", source="me"))
'''


@pytest.mark.usefixtures("own_registry")
@pytest.mark.parametrize("package", ["postmax.losses", "postmax.losses.terms"])
def test_one_file_adds_a_loss(package, tmp_path, monkeypatch):
    (tmp_path / "a_new_file.py").write_text(NEW_FILE)
    monkeypatch.setattr(importlib.import_module(package), "__path__", [str(tmp_path)])
    catalogue._LOSSES._discovered = False
    try:
        assert "cubed" in losses.names()
        p = LOGITS.softmax(1)[range(6), LABELS]
        torch.testing.assert_close(losses.get("cubed")(LOGITS, LABELS), ((1 - p) ** 3).mean())
    finally:
        monkeypatch.delitem(sys.modules, f"{package}.a_new_file")


@pytest.mark.usefixtures("own_registry")
@pytest.mark.parametrize("build", [lambda: ("a", "tuple"), torch.nn.CrossEntropyLoss])
def test_builders_must_make_losses(build):
    losses.register("mine", build, "not a loss")
    with pytest.raises(InputError, match=r"the builder of the loss mine must return a postmax\.losses\.Loss"):
        losses.get("mine")


@pytest.mark.usefixtures("own_registry")
def test_a_function_that_makes_a_loss_without_shared_options():
    losses.register("mine", lambda factor=2.0: Brier(factor), "of my own")
    assert isinstance(losses.get("mine"), Brier)
    with pytest.raises(InputError, match="the loss mine does not take reduction"):
        losses.get("mine", reduction="none")


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
        assert isinstance(loss.at(0.3), losses.Loss)
        for share in (3, -0.1, float("nan"), "half", True):
            with pytest.raises(InputError, match=r"at\(share\) takes the share of the training that is over"):
                loss.at(share)
