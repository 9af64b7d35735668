"""MentorNet's curriculum against its formula, row by row."""

import pytest
import torch
from small_runs import estimate_of, small_config
from torch import nn
from torch.nn import functional as F

from postmax.errors import InputError
from postmax.methods.mentornet import weights_of
from postmax.train.build import build
from postmax.transition import Transition

PLAIN = ("method=mentornet", "loss=ce", "optimiser.momentum=0", "schedule=constant", "model.hidden=[]")
ALL = ("method.early_dropout=0", "method.late_dropout=0")


def moving_percentile(trainer):
    return float(trainer.save().part("state")["moving percentile"])


def test_weights():
    excess = torch.tensor([-3.0, -0.1, 0.0, 0.1, 1.0, 1.9, 5.0])
    assert weights_of(excess, None).tolist() == [1, 1, 1, 0, 0, 0, 0]
    assert weights_of(excess, 2.0).tolist() == pytest.approx([1, 1, 1, 0.95, 0.5, 0.05, 0])


@pytest.mark.parametrize(
    ("epoch", "weigh"),
    [
        (0, lambda excess: 1.0),
        (1, lambda excess: 1.0),
        (2, lambda excess: float(excess <= 0)),
        (8, lambda excess: float(excess <= 0)),
        (9, lambda excess: min(1.0, max(0.0, 1 - excess / 0.5))),
    ],
)
def test_one_step_of_each_phase(epoch, weigh):
    options = ("method.noise_rate=0.3", "method.softness=0.5", "method.memory=0.6", "epochs=10", *ALL)
    trainer = build(small_config(*PLAIN, *options)).trainer
    list(trainer.steps(0))  # sets the moving percentile
    before = moving_percentile(trainer)
    network = trainer.resources.networks[0]
    copy = nn.Linear(30, 2)
    copy.load_state_dict({key.removeprefix("fc."): value for key, value in network.state_dict().items()})
    batch = next(iter(trainer.batches.epoch(epoch)))
    step = next(trainer.steps(epoch))
    losses = F.cross_entropy(copy(batch.inputs), batch.labels, reduction="none")
    ordered = sorted(losses.tolist())
    place = 0.7 * 63
    low = int(place)
    percentile = ordered[low] + (place - low) * (ordered[low + 1] - ordered[low])
    moving = 0.6 * before + 0.4 * percentile
    weights = [weigh(found - moving) for found in losses.tolist()]
    value = sum(weight * found for weight, found in zip(weights, losses, strict=True)) / sum(weights)
    assert step.loss.item() == pytest.approx(value.item(), rel=1e-5)
    assert step.values["weight"] == pytest.approx(sum(weights) / 64, rel=1e-5)
    gradients = torch.autograd.grad(value, list(copy.parameters()))
    for start, gradient, ours in zip(copy.parameters(), gradients, network.parameters(), strict=True):
        torch.testing.assert_close(ours, start - 0.05 * gradient)


def test_the_first_batch_sets_the_moving_percentile():
    trainer = build(small_config(*PLAIN, "method.noise_rate=0.5", *ALL)).trainer
    network, batch = trainer.resources.networks[0], next(iter(trainer.batches.epoch(0)))
    losses = F.cross_entropy(network(batch.inputs), batch.labels, reduction="none")
    next(trainer.steps(0))
    ordered = sorted(losses.tolist())
    assert moving_percentile(trainer) == pytest.approx((ordered[31] + ordered[32]) / 2, rel=1e-5)


def test_rows_are_left_out_at_random_more_of_them_at_first():
    trainer = build(small_config(*PLAIN, "method.noise_rate=0", "method.soft_epochs=0", "epochs=10")).trainer
    assert next(trainer.steps(0)).values["weight"] == 0.5
    assert next(trainer.steps(1)).values["weight"] == 0.5
    after = next(trainer.steps(2)).values["weight"]
    assert after <= 1 - 3 / 64  # 5 % of 64 rows are 3


def test_the_share_of_wrong_labels_is_estimated_unless_it_is_given():
    def estimate(train):
        return estimate_of(Transition.symmetric(2, 0.25), train.classes, rate=0.25)

    losses = []
    for found in (
        build(small_config(*PLAIN), estimate=estimate),
        build(small_config(*PLAIN, "method.noise_rate=0.25")),
    ):
        list(found.trainer.steps(0))
        losses.append(moving_percentile(found.trainer))
    assert losses[0] == losses[1]


def test_soft_weights_suit_the_scale_of_the_loss(monkeypatch):
    """SL with two classes pulls 2/9 as much as cross-entropy, so its losses exceed the percentile by less."""
    seen = []
    monkeypatch.setattr(
        "postmax.methods.mentornet.weights_of",
        lambda excess, softness: seen.append(softness) or torch.ones_like(excess),
    )
    options = ("method.noise_rate=0.2", "method.warmup_epochs=0", "method.soft_epochs=4", "loss=sl-pml")
    next(build(small_config(*PLAIN, *options)).trainer.steps(0))
    assert seen == [pytest.approx(2 / 9)]


def test_a_batch_without_weights_changes_nothing(monkeypatch):
    monkeypatch.setattr("postmax.methods.mentornet.weights_of", lambda excess, _: torch.zeros_like(excess))
    trainer = build(small_config(*PLAIN, "method.noise_rate=0.2", "method.warmup_epochs=0")).trainer
    before = trainer.resources.networks[0].fc.weight.clone()
    assert float(next(trainer.steps(0)).loss.detach()) == 0
    assert torch.equal(trainer.resources.networks[0].fc.weight, before)


def test_batches_of_one_row():
    trainer = build(small_config(*PLAIN, "method.noise_rate=0.2", "batch_size=1", "data.train_rows=10")).trainer
    for epoch in range(4):
        list(trainer.steps(epoch))


@pytest.mark.parametrize(
    "option",
    [
        "noise_rate=1",
        "warmup_epochs=-1",
        "soft_epochs=0.5",
        "softness=0",
        "memory=1",
        "early_dropout=1",
        "late_dropout=x",
    ],
)
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]}"):
        build(small_config("method=mentornet", f"method.{option}"))
