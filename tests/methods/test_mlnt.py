"""MLNT: neighbours, trial steps and their gradients against plain loops and finite differences."""

import math

import pytest
import torch
from small_runs import small_config
from torch import nn
from torch.nn import functional as F

from postmax import losses, models
from postmax.errors import InputError
from postmax.methods import mlnt
from postmax.methods.mlnt import nearest, neighbour_labels, trial_step
from postmax.methods.parts.pull import pull
from postmax.train.build import build

CE = losses.get("ce", reduction="none")


def trainer_of(*overrides):
    return build(small_config("method=mlnt", "method.trials=2", "epochs=8", *overrides)).trainer


@pytest.mark.parametrize(("rows", "expected"), [(2, 1), (7, 6), (11, 10), (12, 10)])
def test_neighbours_are_the_nearest_other_rows(rows, expected):
    features = torch.randn(rows, 3, generator=torch.Generator().manual_seed(0))
    found = nearest(features, 10)
    assert found.shape == (rows, expected)
    for row in range(rows):
        distances = {other: math.dist(features[row].tolist(), features[other].tolist()) for other in range(rows)}
        del distances[row]
        assert found[row].tolist() == sorted(distances, key=distances.get)[:expected]


def test_a_row_is_never_its_own_neighbour_even_if_all_rows_are_equal():
    found = nearest(torch.ones(5, 3), 10)
    assert all(row not in found[row].tolist() for row in range(5))


def test_a_share_of_the_labels_comes_from_neighbours():
    labels = torch.arange(20)  # each row has a label of its own, so that one sees where a label comes from
    near = nearest(torch.arange(20.0)[:, None], 3)
    seen = set()
    for seed in range(20):
        found = neighbour_labels(labels, near, 0.3, torch.Generator().manual_seed(seed))
        changed = (found != labels).nonzero()[:, 0]
        assert len(changed) == 6
        assert all(found[row] in labels[near[row]] for row in changed)
        seen |= {(int(row), int(found[row])) for row in changed}
    assert len(seen) > 40  # other rows and other neighbours each time


def linear():
    network = nn.Linear(3, 4).double()
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randn(6, 3, generator=generator).double()
    return network, inputs, torch.randint(4, (6,), generator=generator)


def test_a_trial_step_is_gradient_descent_and_leaves_the_network_alone():
    network, inputs, labels = linear()
    before = network.weight.detach().clone()
    moved = trial_step(CE, network, inputs, labels, 0.3, second_order=False)
    p = network(inputs).detach().softmax(-1)
    slope = torch.zeros_like(before)
    for row, label in enumerate(labels.tolist()):
        for k in range(4):
            slope[k] += (p[row, k] - float(k == label)) * inputs[row] / 6
    torch.testing.assert_close(moved["weight"].detach(), before - 0.3 * slope)
    assert torch.equal(network.weight, before)


@pytest.mark.parametrize("second_order", [True, False])
def test_the_gradient_through_a_trial_step(second_order):
    """Of second order it is the true one. Of first order it is that of the loss at the new weights."""
    network, inputs, labels = linear()
    wanted = labels.flip(0)

    def after(weight):
        """The loss after the trial step, as a function of the weights before it, and the weights after it."""
        weight = weight.detach().requires_grad_()
        (slope,) = torch.autograd.grad(F.cross_entropy(inputs @ weight.T + network.bias.detach(), labels), weight)
        bias = network.bias.detach().requires_grad_()
        (bias_slope,) = torch.autograd.grad(F.cross_entropy(inputs @ weight.T + bias, labels), bias)
        new = (weight - 0.7 * slope).detach()
        new_bias = (bias - 0.7 * bias_slope).detach()
        return F.cross_entropy(inputs @ new.T + new_bias, wanted).item(), new, new_bias

    moved = trial_step(CE, network, inputs, labels, 0.7, second_order=second_order)
    value = F.cross_entropy(inputs @ moved["weight"].T + moved["bias"], wanted)
    (found,) = torch.autograd.grad(value, network.weight)
    plain, new, new_bias = after(network.weight)
    assert value.item() == pytest.approx(plain)
    if second_order:
        for place in ((0, 0), (2, 1), (3, 2)):
            nudge = torch.zeros(4, 3).double()
            nudge[place] = 1e-5
            numeric = (after(network.weight + nudge)[0] - after(network.weight - nudge)[0]) / 2e-5
            assert found[place].item() == pytest.approx(numeric, rel=1e-4)
    else:
        new.requires_grad_()
        (expected,) = torch.autograd.grad(F.cross_entropy(inputs @ new.T + new_bias, wanted), new)
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("loss", ["ce", "gan-pml", "sl-pml"])
def test_gradients_of_second_order_are_finite_for_other_losses(loss):
    trainer = trainer_of("method.second_order=true", "method.warmup_epochs=0", f"loss={loss}")
    trainer.epoch(0)
    trainer.epoch(1)
    assert all(tensor.isfinite().all() for tensor in trainer.weights(0).values())


def test_trial_steps_leave_batch_normalisation_alone():
    network = models.get("mlp", num_classes=3, input_shape=(4,), hidden=(5,), batch_norm=True)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    trial_step(CE, network, torch.randn(8, 4), torch.arange(8) % 3, 0.1, second_order=True)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_the_phases():
    trainer = trainer_of(
        "method.warmup_epochs=2", "method.ramp_epochs=2", "method.weight=3", "method.decay=0.5", "loss=ce"
    )
    network, teacher = trainer.resources.networks
    weights = []
    for epoch in range(6):
        for step in trainer.steps(epoch):
            weights.append(step.values["teacher_weight"])
            if epoch < 2:
                torch.testing.assert_close(teacher.fc.weight, network.fc.weight)
        if epoch >= 2:
            assert not torch.equal(teacher.fc.weight, network.fc.weight)
    steps = len(weights) // 6
    assert weights[: 2 * steps] == [0] * (2 * steps)
    assert weights[2 * steps] == pytest.approx(3 * math.exp(-5))
    assert weights[3 * steps] == pytest.approx(3 * math.exp(-5 / 4))
    assert weights[4 * steps :] == pytest.approx([3] * (2 * steps))


def test_a_step_adds_the_weighted_change_to_the_loss():
    trainer = trainer_of("method.warmup_epochs=0", "method.ramp_epochs=0", "method.weight=3", "loss=ce")
    batch = next(iter(trainer.batches.epoch(0)))
    step = next(trainer.steps(0))
    plain = F.cross_entropy(step.logits, batch.labels).item()
    assert step.values["change_in_trials"] > 0
    assert step.loss.item() == pytest.approx(plain + 3 * step.values["change_in_trials"], rel=1e-5)


@pytest.mark.parametrize(
    "option",
    ["trials=0", "wrong_share=1", "neighbours=0", "trial_rate=0", "second_order=1", "weight=-1", "decay=1"],
)
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=rf"method\.{option.partition('=')[0]} must be"):
        trainer_of(f"method.{option}")


@pytest.mark.parametrize(("share", "strength"), [(0, 0.9), (0.5, 0.25)])
def test_a_trial_step_and_the_term_are_as_strong_as_with_cross_entropy(monkeypatch, share, strength):
    """Also where the loss changes during the training: each epoch asks how strongly it pulls then."""
    rates = []
    plain = mlnt.trial_step

    def spied(loss, network, inputs, labels, rate, **options):
        rates.append(rate)
        return plain(loss, network, inputs, labels, rate, **options)

    monkeypatch.setattr(mlnt, "trial_step", spied)
    options = ("method.warmup_epochs=0", "method.ramp_epochs=0", "method.trial_rate=0.3", "method.weight=2")
    trainer = trainer_of(*options, "loss=sharpened-pml")
    assert pull(trainer.method.loss.at(share), 2) == pytest.approx(strength, abs=0.03)
    step = next(trainer.steps(round(8 * share)))
    assert rates == pytest.approx([0.3 / pull(trainer.method.loss.at(share), 2)] * 2)
    assert step.values["teacher_weight"] == pytest.approx(2 * pull(trainer.method.loss.at(share), 2))
