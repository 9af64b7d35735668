"""The catalogue of methods, and the one that every other is measured against."""

import subprocess
import sys

import pytest
import torch
from torch.nn import functional as F

import postmax as pm
from postmax import losses, methods, models
from postmax.errors import InputError
from postmax.methods import catalogue
from postmax.registry import Registry
from postmax.train.side_by_side import LaneBatch, Lanes


def setting(loss=None, lanes=2):
    torch.manual_seed(0)
    networks = [models.get("mlp", num_classes=4, input_shape=(3,), hidden=()) for _ in range(lanes)]
    return methods.Setting(
        networks=lambda: Lanes(networks),
        loss=loss or losses.get("ce", reduction="none"),
        num_classes=4,
        rows=10,
        epochs=5,
    )


def a_batch(lanes=2, rows=5):
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(4, (lanes, rows), generator=generator)
    return LaneBatch(torch.randn(lanes, rows, 3, generator=generator), labels, torch.arange(rows).expand(lanes, -1))


# The catalogue


def test_names():
    assert "standard" in methods.names()
    assert methods.summary("standard") == "one network trained with one loss"
    assert all(methods.summary(name) for name in methods.names())


@pytest.mark.parametrize("ask", [methods.summary, lambda name: methods.get(name, setting())])
def test_a_method_nobody_knows(ask):
    with pytest.raises(InputError, match=r"unknown method 'standart'. Did you mean 'standard'"):
        ask("standart")


def test_an_option_nobody_knows():
    with pytest.raises(InputError, match="unknown option of the method standard 'alpha'"):
        methods.get("standard", setting(), alpha=1)


def test_a_method_of_ones_own(monkeypatch):
    monkeypatch.setattr(catalogue, "_METHODS", Registry("method"))

    def build(found, *, alpha=1.0):
        return (found, alpha)

    methods.register("mine", build, "of my own")
    here = setting()
    assert methods.get("mine", here) == (here, 1.0)
    assert methods.get("Mine", here, alpha=2) == (here, 2)
    assert methods.summary("mine") == "of my own"
    with pytest.raises(
        InputError, match=r"unknown option of the method mine 'alhpa'. Did you mean 'alpha'\? Known: alpha"
    ):
        methods.get("mine", here, alhpa=3)
    with pytest.raises(InputError, match="taken"):
        methods.register("MINE", build, "again")


@pytest.mark.parametrize("module", ["postmax.methods", "postmax.train"])
@pytest.mark.thorough
def test_every_package_can_be_imported_first(module):
    command = [sys.executable, "-c", f"import {module}"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


# One network, one loss


@pytest.mark.parametrize("lanes", [1, 3])
def test_the_loss_of_a_step_is_the_mean_of_each_lane(lanes):
    method, batch = methods.get("standard", setting(lanes=lanes)), a_batch(lanes)
    step = method.training_step(batch, 0)
    assert step.loss.shape == (lanes,)
    assert not step.logits.requires_grad
    for lane in range(lanes):
        state = method.lane_state(lane)
        logits = batch.inputs[lane] @ state["fc.weight"].T + state["fc.bias"]
        torch.testing.assert_close(step.logits[lane], logits)
        torch.testing.assert_close(step.loss[lane], F.cross_entropy(logits, batch.labels[lane]))
        torch.testing.assert_close(method(batch.inputs)[lane], logits)


@pytest.mark.parametrize("divergence", ["kl", "sl", "gan", "js"])
@pytest.mark.parametrize("correction", ["forward", "objective", "posterior", "factored"])
def test_steps_of_corrected_losses(divergence, correction):
    noise = pm.Transition.symmetric(4, 0.3)
    chosen = {"divergence": divergence, "correction": correction}
    method = methods.get("standard", setting(losses.get("fpml", transition=noise, reduction="none", **chosen)))
    batch = a_batch()
    step, reference = method.training_step(batch, 0), pm.FPMLLoss(transition=noise, **chosen)
    for lane in range(2):
        torch.testing.assert_close(step.loss[lane], reference(step.logits[lane], batch.labels[lane]))


def test_readings():
    logits = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(3))
    noise = pm.Transition.symmetric(4, 0.3)
    for correction, names in ((None, {"model"}), ("forward", {"model"}), ("posterior", {"model", "uncorrected"})):
        loss = losses.get("fpml", transition=noise, divergence="sl", correction=correction, reduction="none")
        found = methods.get("standard", setting(loss)).readings(logits)
        assert set(found) == names
        for posterior in found.values():
            assert posterior.shape == logits.shape
            torch.testing.assert_close(posterior.sum(-1), torch.ones(2, 5))
        reference = pm.FPMLLoss("sl", transition=noise if correction else None, correction=correction)
        for lane in range(2):
            torch.testing.assert_close(found["model"][lane], reference.posterior(logits[lane]))
            if "uncorrected" in found:
                torch.testing.assert_close(found["uncorrected"][lane], pm.FPMLLoss("sl").posterior(logits[lane]))


@pytest.mark.parametrize("correction", [None, "forward", "objective", "posterior", "factored"])
def test_what_is_expected_of_noisy_labels(correction):
    """The probabilities of the true classes sent through the noise, or what they were before they were corrected."""
    noise = pm.Transition([[0.7, 0.2, 0.1, 0], [0, 0.9, 0.1, 0], [0.1, 0, 0.9, 0], [0, 0, 0.2, 0.8]])
    loss = losses.get("fpml", transition=noise, divergence="sl", correction=correction, reduction="none")
    logits = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(3))
    method = methods.get("standard", setting(loss))
    found, readings = method.label_posterior(logits), method.readings(logits)
    if correction is None:
        expected = readings["model"]
    elif correction == "posterior":
        expected = readings["uncorrected"]
    else:
        expected = torch.zeros(2, 5, 4)
        for true in range(4):
            for given in range(4):
                expected[..., given] += readings["model"][..., true] * float(noise.matrix[true, given])
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found.sum(-1), torch.ones(2, 5))
