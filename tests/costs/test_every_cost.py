"""What holds for every cost there is: it is tested, its facts are facts, its presets can be built."""

import importlib
from pathlib import Path

import pytest
import torch
from cost_battery import INFINITE_IF_MASKED

import postmax as pm
from postmax.costs import Rows
from postmax.costs.catalogue import PRESETS, entry, option_names
from postmax.errors import InputError

NAMES = pm.costs.names()
NOISE = pm.Transition.symmetric(2, 0.2)


def make(name, **options):
    if "transition" in option_names(name):
        options["transition"] = NOISE
    return pm.losses.CostLoss(pm.costs.get(name, **options), reduction="none")


# Facts hold for any number of classes; some losses are tamer with the two that are tried here.
BOUNDED_FOR_TWO_CLASSES = {"rda"}


def prices(name, logits):
    """(N, C) what each label costs each row, among others whose labels are not balanced."""
    cost = make(name).cost
    others = torch.tensor([0.7, 0.3], dtype=logits.dtype).expand_as(logits) if cost.mixes_rows else None
    return cost(Rows(logits, None, others))


def test_every_cost_has_a_reference():
    tested = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        module = importlib.import_module(path.stem)
        tested |= set(getattr(module, "TESTERS", {})) | set(getattr(module, "TESTED_BY_HAND", ()))
    assert set(NAMES) == tested


@pytest.mark.parametrize("name", NAMES)
def test_facts(name):
    facts = entry(name).facts
    random = 4 * torch.randn(200, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    total = prices(name, random).sum(1)
    assert facts.symmetric == bool((total.max() - total.min()) < 1e-9 * total.abs().max())
    far = torch.tensor([[1e4, -1e4], [-1e4, 1e4], [1e2, -1e2]], dtype=torch.float64)
    assert facts.bounded == bool(prices(name, far).abs().max() < 150) or name in BOUNDED_FOR_TWO_CLASSES
    assert facts.source


@pytest.mark.parametrize("name", NAMES)
def test_presets(name):
    for preset, settings in entry(name).presets.items():
        assert preset in PRESETS
        assert settings.source
        assert pm.costs.get(name, preset=preset) == pm.costs.get(name, **settings.options)
    if not option_names(name):
        assert pm.costs.published(name, "cifar10").options == {}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("soft", [False, True])
def test_which_costs_are_infinite_if_a_class_is_masked(name, soft):
    logits = torch.tensor([[0.5, -torch.inf], [-torch.inf, 0.25]], dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 1])
    target = torch.nn.functional.one_hot(labels).double() if soft else labels
    if make(name).mixes_rows:  # and neither is the label of another row
        logits, target = logits[:1], target[:1]
    if name in INFINITE_IF_MASKED:
        assert not make(name)(logits, target).isfinite().any()
        return
    value = make(name)(logits, target)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    assert value.isfinite().all()
    assert not gradient.any()  # there is no other class to choose


def test_presets_nobody_published():
    with pytest.raises(InputError, match=r"unknown preset 'cifar'\. Did you mean 'cifar10'"):
        pm.costs.get("gce", preset="cifar")
    with pytest.raises(InputError, match="no settings of rce were published for webvision"):
        pm.costs.get("rce", preset="webvision")


@pytest.mark.parametrize("name", NAMES)
def test_prediction(name):
    logits = torch.tensor([[2.0, -1.0], [0.5, 0.75]], requires_grad=True)
    loss = make(name)
    posterior = loss.posterior(logits)
    torch.testing.assert_close(posterior.sum(1), torch.ones(2))
    assert loss.predict(logits).tolist() == [0, 1]
    assert type(loss).__name__ in repr(loss)


@pytest.mark.parametrize("name", NAMES)
def test_training_lowers_the_price_of_the_label(name):
    logits = torch.zeros(6, 2, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 1, 0, 1, 0, 1])
    make(name)(logits, labels).sum().backward()
    assert (logits.grad.gather(1, labels[:, None]) < 0).all()
