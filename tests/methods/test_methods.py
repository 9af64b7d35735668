"""The catalogue of methods, and the method that every other is compared with."""

import subprocess
import sys

import pytest
import torch
from small_runs import small_config
from torch.nn import functional as F

import postmax as pm
from postmax import losses, methods
from postmax.errors import InputError
from postmax.methods import catalogue
from postmax.methods.method import loss_readings
from postmax.registry import Registry
from postmax.train.build import build

# The catalogue


def test_names():
    assert "standard" in methods.names()
    assert methods.summary("standard") == "one network trained with one loss"
    assert all(methods.summary(name) for name in methods.names())


@pytest.mark.parametrize("ask", [methods.summary, lambda name: methods.get(name, None)])
def test_an_unknown_method(ask):
    with pytest.raises(InputError, match=r"unknown method 'standart'. Did you mean 'standard'"):
        ask("standart")


def test_an_unknown_option():
    with pytest.raises(InputError, match="the method standard has no options, so 'alpha' cannot be one"):
        methods.get("standard", None, alpha=1)


def test_a_method_of_ones_own(monkeypatch):
    monkeypatch.setattr(catalogue, "_METHODS", Registry("method"))

    def make(found, *, alpha=1.0):
        return (found, alpha)

    methods.register("mine", make, "of my own")
    here = object()
    assert methods.get("mine", here) == (here, 1.0)
    assert methods.get("Mine", here, alpha=2) == (here, 2)
    assert methods.summary("mine") == "of my own"
    with pytest.raises(
        InputError, match=r"unknown option of the method mine 'alhpa'. Did you mean 'alpha'\? Known: alpha"
    ):
        methods.get("mine", here, alhpa=3)
    with pytest.raises(InputError, match="taken"):
        methods.register("MINE", make, "again")


@pytest.mark.thorough
@pytest.mark.parametrize("module", ["postmax.methods", "postmax.train", "postmax.runs"])
def test_every_package_can_be_imported_first(module):
    command = [sys.executable, "-c", f"import {module}"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


# One network, one loss


def test_a_step_is_the_mean_loss_of_a_batch():
    trainer = build(small_config("loss=ce")).trainer
    batch = next(iter(trainer.batches.epoch(0)))
    expected = trainer.method.answer(batch.inputs)
    step = next(trainer.steps(0))
    torch.testing.assert_close(step.logits, expected)
    torch.testing.assert_close(step.loss, F.cross_entropy(expected, batch.labels))
    assert torch.equal(step.rows, batch.rows)


@pytest.mark.parametrize("divergence", ["kl", "sl", "gan", "js"])
@pytest.mark.parametrize("correction", ["forward", "objective", "posterior", "factored"])
def test_steps_of_corrected_losses(divergence, correction):
    config = small_config(f"loss.divergence={divergence}", f"loss.correction={correction}", "noise=binary:0.1,0.3")
    trainer = build(config).trainer
    batch, step = next(iter(trainer.batches.epoch(0))), next(trainer.steps(0))
    noise = pm.Transition.binary(0.1, 0.3)
    reference = pm.FPMLLoss(divergence, transition=noise, correction=correction)
    torch.testing.assert_close(step.loss, reference(step.logits, batch.labels))


def test_readings():
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(3))
    noise = pm.Transition.symmetric(4, 0.3)
    for correction, names in ((None, {"model"}), ("forward", {"model"}), ("posterior", {"model", "uncorrected"})):
        loss = losses.get("fpml", transition=noise, divergence="sl", correction=correction, reduction="none")
        found = loss_readings(loss, logits)
        assert set(found) == names
        for posterior in found.values():
            assert posterior.shape == logits.shape
            torch.testing.assert_close(posterior.sum(-1), torch.ones(5))
        reference = pm.FPMLLoss("sl", transition=noise if correction else None, correction=correction)
        torch.testing.assert_close(found["model"], reference.posterior(logits))
        if "uncorrected" in found:
            torch.testing.assert_close(found["uncorrected"], pm.FPMLLoss("sl").posterior(logits))


@pytest.mark.parametrize("correction", [None, "forward", "objective", "posterior", "factored"])
def test_what_is_expected_of_noisy_labels(correction):
    """The probabilities of the true classes sent through the noise, or what they were before they were corrected."""
    noise = pm.Transition([[0.7, 0.2, 0.1, 0], [0, 0.9, 0.1, 0], [0.1, 0, 0.9, 0], [0, 0, 0.2, 0.8]])
    loss = losses.get("fpml", transition=noise, divergence="sl", correction=correction, reduction="none")
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(3))
    found, readings = loss.label_posterior(logits), loss_readings(loss, logits)
    if correction is None:
        expected = readings["model"]
    elif correction == "posterior":
        expected = readings["uncorrected"]
    else:
        expected = torch.zeros(5, 4)
        for true in range(4):
            for given in range(4):
                expected[..., given] += readings["model"][..., true] * float(noise.matrix[true, given])
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found.sum(-1), torch.ones(5))


def test_presets(monkeypatch):
    monkeypatch.setattr(catalogue, "_METHODS", Registry("method"))

    def make(found, *, alpha=1.0, beta=2.0):
        return (found, alpha, beta)

    published = methods.Preset({"alpha": 5.0, "beta": 6.0}, "a paper")
    methods.register("mine", make, "of my own", presets={"cifar10": published})
    assert methods.get("mine", None, preset="cifar10") == (None, 5.0, 6.0)
    assert methods.get("mine", None, preset="cifar10", beta=7.0) == (None, 5.0, 7.0)
    assert methods.get("mine", None) == (None, 1.0, 2.0)
    with pytest.raises(InputError, match=r"unknown preset of the method mine 'cifar1'. Did you mean 'cifar10'"):
        methods.get("mine", None, preset="cifar1")
    assert methods.describe("mine").options == ("alpha", "beta", "preset")
