"""Negative label smoothing: the weights of all classes, the floor that bounds the loss, and the two phases."""

import math

import pytest
import torch
from small_runs import small_config

import postmax as pm
from postmax.errors import InputError
from postmax.methods.negative_smoothing import smoothed_losses, smoothing_weights
from postmax.train.build import build

LOGITS = 2 * torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 3, 1, 1, 2])


def plain(name):
    return pm.losses.get(name, reduction="none")


def trainer_of(*overrides):
    return build(small_config("method=negative-label-smoothing", "epochs=4", *overrides)).trainer


@pytest.mark.parametrize("rate", [-8.0, -1.0, 0.0, 0.1, 0.8])
def test_for_cross_entropy_it_is_the_published_loss(rate):
    found = smoothed_losses(plain("ce"), LOGITS, LABELS, smoothing_weights(4, rate), 0.0)
    for row, (logits, label) in enumerate(zip(LOGITS.tolist(), LABELS.tolist(), strict=True)):
        total = sum(math.exp(z) for z in logits)
        surprise = [-math.log(math.exp(z) / total) for z in logits]
        expected = (1 - rate) * surprise[label] + rate * sum(surprise) / 4
        assert float(found[row]) == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("rate", [-1.0, 0.1])
@pytest.mark.parametrize("name", ["gce", "sl-pml", "gan-pml"])
def test_other_losses_are_summed_over_the_classes_in_the_same_way(name, rate):
    found = smoothed_losses(plain(name), LOGITS, LABELS, smoothing_weights(4, rate), 0.0)
    each = torch.stack([plain(name)(LOGITS, torch.full((5,), k)) for k in range(4)], 1)
    expected = (1 - rate) * each.gather(1, LABELS[:, None])[:, 0] + rate * each.mean(1)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("rate", "redrawn"), [(-1.0, 0.5), (-0.25, 0.2), (-4.0, 0.8)])
def test_a_negative_rate_undoes_symmetric_noise(rate, redrawn):
    noise = (1 - redrawn) * torch.eye(4, dtype=torch.float64) + redrawn / 4
    torch.testing.assert_close(smoothing_weights(4, rate), noise.inverse())
    torch.testing.assert_close(pm.Transition.symmetric(4, redrawn * 3 / 4).matrix, noise)


@pytest.mark.parametrize("name", ["ce", "gan-pml", "kl-pml"])
def test_with_a_floor_the_loss_is_bounded(name):
    weights, label = smoothing_weights(4, -1.0), torch.tensor([0])

    def value(scale, floor):
        sure = plain(name).logits_of(torch.tensor([[-scale] * 4], dtype=torch.float64).exp().index_fill(1, label, 1.0))
        return float(smoothed_losses(plain(name), sure, label, weights, floor))

    assert value(40, 0.0) < value(20, 0.0) - 1
    assert value(40, 0.02) == pytest.approx(value(20, 0.02), abs=1e-3)


def test_above_the_floor_nothing_changes():
    free, floored = (
        smoothed_losses(plain("ce"), torch.zeros(1, 4), torch.tensor([0]), smoothing_weights(4, -1.0), floor)
        for floor in (0.0, 0.2)
    )
    torch.testing.assert_close(free, floored)


def test_below_the_floor_the_negative_weights_have_no_influence():
    def naive(z):
        total = sum(math.exp(value) for value in z)
        p = [math.exp(value) / total for value in z]
        raised = [max(value, 0.01) for value in p]  # the last two classes are below the floor
        negative = sum(-math.log(value / sum(raised)) for value in raised[1:]) / 4
        return 1.75 * -math.log(p[0]) - negative  # 1.75 is 2 − 1/4

    point = [3.0, 0.0, -3.0, -3.0]
    logits = torch.tensor([point], dtype=torch.float64, requires_grad=True)
    found = smoothed_losses(plain("ce"), logits, torch.tensor([0]), smoothing_weights(4, -1.0), 0.01)
    found.sum().backward()
    assert found.item() == pytest.approx(naive(point), rel=1e-9)
    for k in range(4):
        up, down = ([z + sign * 1e-5 * (k == j) for j, z in enumerate(point)] for sign in (1, -1))
        assert float(logits.grad[0, k]) == pytest.approx((naive(up) - naive(down)) / 2e-5, abs=1e-7)
    # Without the floor the slope of such a class would be p + 0.25: it would be pushed down, however small p is.
    assert float(logits.grad[0, 2]) < 0.02


def test_the_phases_their_losses_and_their_learning_rates():
    options = ("method.warmup_epochs=2", "method.warmup_smoothing=0.2", "method.second_rate=0.01", "loss=gce")
    trainer = trainer_of(*options, "schedule=constant")
    labels, rates = trainer._truth.labels[0], []
    for epoch in range(4):
        for step in trainer.steps(epoch):
            weights = smoothing_weights(2, 0.2 if epoch < 2 else -1.0)
            losses = smoothed_losses(plain("gce"), step.logits, labels[step.rows], weights, 0.1 / 2)
            torch.testing.assert_close(step.loss, losses.mean())
        optimisers = {name: one.optimiser for name, one in trainer.resources.optimisers.items()}
        rates.append(optimisers["first phase" if epoch < 2 else "second phase"].param_groups[0]["lr"])
    assert rates == pytest.approx([0.05, 0.05, 0.0005, 0.0005])


@pytest.mark.parametrize(("epochs", "warmup"), [(220, 120), (11, 6), (2, 1), (1, 0)])
def test_the_warm_up_is_a_share_of_the_training(epochs, warmup):
    trainer = build(small_config("method=negative-label-smoothing", f"epochs={epochs}")).trainer
    assert trainer.method._change == warmup


def test_a_large_negative_rate_does_not_diverge():
    options = ("method.smoothing=-8", "method.warmup_epochs=0", "method.second_rate=1", "epochs=30", "loss=ce")
    trainer = trainer_of(*options)
    for epoch in range(30):
        record = trainer.epoch(epoch)[0]
    # The negative part is at most 4 times −log of the floor 0.05, and the positive one is not negative.
    assert record["loss"] > 4 * math.log(0.05 / 1.05)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("method.smoothing=1",), r"method\.smoothing must be a number below 1"),
        (("method.warmup_smoothing=-0.1",), r"method\.warmup_smoothing must be"),
        (("method.floor=1",), r"method\.floor must be"),
        (("method.second_rate=0",), r"method\.second_rate must be"),
        (("method.warmup_epochs=-1",), r"method\.warmup_epochs must be"),
        (("loss=peer",), "compares the rows of a batch"),
        (("loss=forward", "transition=symmetric:0.2"), "is corrected already"),
        (("loss=logit-clip",), "cannot express every posterior"),
    ],
)
def test_what_it_refuses(overrides, message):
    with pytest.raises(InputError, match=message):
        trainer_of(*overrides)


def test_without_a_floor_it_takes_losses_that_cannot_express_every_posterior():
    trainer_of("loss=logit-clip", "method.floor=0").epoch(0)
