"""JoCoR against its published formula, row by row."""

import math

import pytest
import torch
from small_runs import small_config
from torch import nn

from postmax import losses
from postmax.errors import InputError
from postmax.methods.jocor import joint_loss
from postmax.train.build import build


def by_hand(p, q, label, weight):
    """The published joint loss of one row, from two distributions."""
    distance = sum(p[k] * math.log(p[k] / q[k]) + q[k] * math.log(q[k] / p[k]) for k in range(len(p)))
    return (1 - weight) * (-math.log(p[label]) - math.log(q[label])) + weight * distance


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.9])
def test_the_joint_loss_is_the_published_one(weight):
    p, q = torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]), torch.tensor([[0.5, 0.4, 0.1], [0.1, 0.1, 0.8]])
    labels = torch.tensor([0, 1])
    found = joint_loss(losses.get("ce", reduction="none"), p.log() + 3, q.log() - 1, labels, weight)
    expected = [by_hand(p[i].tolist(), q[i].tolist(), int(labels[i]), weight) for i in range(2)]
    assert found.tolist() == pytest.approx(expected, rel=1e-5)


def test_the_distance_is_that_of_the_posteriors_of_the_loss():
    loss = losses.get("gan-pml", reduction="none")
    p, q = torch.tensor([[0.7, 0.3]]), torch.tensor([[0.2, 0.8]])
    first, second, labels = loss.logits_of(p), loss.logits_of(q), torch.tensor([0])
    lost = loss(first, labels) + loss(second, labels)
    distance = 0.5 * math.log(0.7 / 0.2) + 0.5 * math.log(0.8 / 0.3)
    assert float(joint_loss(loss, first, second, labels, 0.9)) == pytest.approx(
        0.1 * float(lost) + 0.9 * distance, rel=1e-4
    )


def test_the_distance_is_as_strong_as_the_loss():
    """A weak loss has a small distance beside it: with SL and two classes 2/9 of that beside cross-entropy."""
    for loss, strength in (("ce", 1), ("sl-pml", 2 / 9)):
        options = ("method=jocor", f"loss={loss}", "method.forget_rate=0", "method.agreement_weight=0.9")
        trainer = build(small_config(*options)).trainer
        batch = next(iter(trainer.batches.epoch(0)))
        first, second = (network(batch.inputs) for network in trainer.resources.networks)
        given = losses.get(loss, reduction="none")
        expected = joint_loss(given, first, second, batch.labels, 0.9, strength).mean()
        assert next(trainer.steps(0)).loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_certain_networks_that_contradict_each_other_have_a_finite_gradient():
    first, second = torch.tensor([[500.0, -500.0]], requires_grad=True), torch.tensor([[-500.0, 500.0]])
    value = joint_loss(losses.get("ce", reduction="none"), first, second, torch.tensor([0]), 0.9)
    value.sum().backward()
    assert value.isfinite().all()
    assert first.grad.isfinite().all()


def test_one_step_moves_both_networks_by_the_rows_with_small_joint_losses():
    options = (
        "method=jocor",
        "method.forget_rate=0.5",
        "method.ramp_epochs=0",
        "method.agreement_weight=0.6",
        "loss=ce",
    )
    settings = ("optimiser.momentum=0", "schedule=constant", "model.hidden=[]")
    trainer = build(small_config(*options, *settings)).trainer
    copies = [nn.Linear(30, 2) for _ in range(2)]
    for copy, network in zip(copies, trainer.resources.networks, strict=True):
        copy.load_state_dict({key.removeprefix("fc."): value for key, value in network.state_dict().items()})
    batch = next(iter(trainer.batches.epoch(0)))
    step = next(trainer.steps(0))
    p, q = (copy(batch.inputs).softmax(-1) for copy in copies)
    joint = [
        0.4 * -(p[i, label].log() + q[i, label].log())
        + 0.6 * ((p[i] * (p[i] / q[i]).log()).sum() + (q[i] * (q[i] / p[i]).log()).sum())
        for i, label in enumerate(batch.labels.tolist())
    ]
    value = sum(sorted(joint, key=lambda found: found.item())[:32]) / 32
    assert step.loss.item() == pytest.approx(value.item(), rel=1e-5)
    assert step.values["kept"] == 0.5
    parameters = [parameter for copy in copies for parameter in copy.parameters()]
    moved = [parameter for network in trainer.resources.networks for parameter in network.parameters()]
    for before, gradient, ours in zip(parameters, torch.autograd.grad(value, parameters), moved, strict=True):
        torch.testing.assert_close(ours, before - 0.05 * gradient)


@pytest.mark.parametrize(("epoch", "kept"), [(0, 1), (1, 0.75), (2, 0.5), (7, 0.5)])
def test_the_share_that_is_left_out_rises(epoch, kept):
    options = ("method=jocor", "method.forget_rate=0.5", "method.ramp_epochs=3", "epochs=8")
    assert next(build(small_config(*options)).trainer.steps(epoch)).values["kept"] == kept


@pytest.mark.parametrize("option", ["agreement_weight=1", "agreement_weight=-0.1", "forget_rate=1", "late_beta=2"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]}"):
        build(small_config("method=jocor", f"method.{option}"))
