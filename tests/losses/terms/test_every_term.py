"""Checks of every loss that is made of terms: it is tested, its facts are facts, its presets can be built."""

import importlib
from pathlib import Path

import pytest
import torch

import postmax as pm
from postmax.errors import InputError
from postmax.losses import LabelledLogits, TermLoss
from postmax.losses.catalogue import find
from postmax.losses.facts import PRESETS

NOISE = pm.Transition.symmetric(2, 0.2)


def make(name, **options):
    return pm.losses.get(name, transition=NOISE, reduction="none", **options)


NAMES = [name for name in pm.losses.names() if isinstance(make(name), TermLoss)]


def declared(constant):
    """The names that the tests of this folder list under `constant`."""
    modules = [importlib.import_module(path.stem) for path in Path(__file__).parent.glob("test_*.py")]
    return {name for module in modules for name in getattr(module, constant, ())}


def losses_of_labels(name, logits):
    """(N, C) the loss of each label for each row, among other rows whose labels are not balanced."""
    term = make(name).term
    others = torch.tensor([0.7, 0.3], dtype=logits.dtype).expand_as(logits) if term.mixes_rows else None
    return term(LabelledLogits(logits, None, others))


def test_every_term_has_a_reference():
    assert set(NAMES) == declared("TESTERS") | declared("TESTED_BY_HAND")


@pytest.mark.parametrize("name", NAMES)
def test_facts(name):
    facts = pm.losses.describe(name)
    random = 4 * torch.randn(200, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    total = losses_of_labels(name, random).sum(1)
    assert facts.symmetric == bool((total.max() - total.min()) < 1e-9 * total.abs().max())
    far = torch.tensor([[1e4, -1e4], [-1e4, 1e4], [1e2, -1e2]], dtype=torch.float64)
    bounded = bool(losses_of_labels(name, far).abs().max() < 150)
    # Facts hold for any number of classes, but only two are tried here.
    assert facts.bounded == bounded or name in declared("BOUNDED_FOR_TWO_CLASSES")
    assert facts.source


@pytest.mark.parametrize("name", NAMES)
def test_presets(name):
    for preset, settings in find(name).presets.items():
        assert preset in PRESETS
        assert settings.source
        assert make(name, preset=preset).term == make(name, **settings.options).term
    if not find(name).own_options:
        assert pm.losses.preset(name, "cifar10").options == {}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("soft", [False, True])
def test_which_terms_are_infinite_if_a_class_is_masked(name, soft):
    logits = torch.tensor([[0.5, -torch.inf], [-torch.inf, 0.25]], dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 1])
    target = torch.nn.functional.one_hot(labels).double() if soft else labels
    if make(name).mixes_rows:  # and neither is the label of another row
        logits, target = logits[:1], target[:1]
    if name in declared("INFINITE_IF_MASKED"):
        assert not make(name)(logits, target).isfinite().any()
        return
    value = make(name)(logits, target)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    assert value.isfinite().all()
    assert not gradient.any()  # there is no other class to choose


def test_presets_that_were_not_published():
    with pytest.raises(InputError, match=r"unknown preset 'cifar'\. Did you mean 'cifar10'"):
        pm.losses.get("gce", preset="cifar")
    with pytest.raises(InputError, match="no settings of rce were published for webvision"):
        pm.losses.get("rce", preset="webvision")


@pytest.mark.parametrize("name", NAMES)
def test_prediction(name):
    logits = torch.tensor([[2.0, -1.0], [0.5, 0.75]], requires_grad=True)
    loss = make(name)
    posterior = loss.posterior(logits)
    torch.testing.assert_close(posterior.sum(1), torch.ones(2))
    assert loss.predict(logits).tolist() == [0, 1]
    assert type(loss).__name__ in repr(loss)


@pytest.mark.parametrize("name", NAMES)
def test_training_makes_the_label_more_probable(name):
    """Or less probable, if a label is a class that the row does not have."""
    logits = torch.zeros(6, 2, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 1, 0, 1, 0, 1])
    loss = make(name)
    loss(logits, labels).sum().backward()
    sign = -1 if loss.complementary else 1
    assert (sign * logits.grad.gather(1, labels[:, None]) < 0).all()
