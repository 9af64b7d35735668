"""Joint optimisation against its published formulas, written as loops."""

import math

import pytest
import torch
from small_runs import small_config

from postmax import losses
from postmax.errors import InputError
from postmax.methods.joint_optimisation import joint_loss
from postmax.methods.parts.pull import pull
from postmax.train.build import build


def trainer_of(*overrides):
    return build(small_config("method=joint-optimisation", "epochs=8", *overrides)).trainer


def by_hand(loss, logits, labels, prior, prior_weight, entropy_weight):
    """The published objective, entry by entry; with KL(prior ‖ mean) in place of the cross-entropy."""
    rows, classes = logits.shape
    posterior = loss.posterior(logits).tolist()
    total = sum(float(loss(logits[i : i + 1], labels[i : i + 1])) for i in range(rows)) / rows
    for k in range(classes):
        mean = sum(posterior[i][k] for i in range(rows)) / rows
        if prior[k]:
            total += prior_weight * prior[k] * math.log(prior[k] / mean)
        total -= entropy_weight * sum(posterior[i][k] * math.log(posterior[i][k]) for i in range(rows)) / rows
    return total


@pytest.mark.parametrize("name", ["ce", "gan-pml", "sl-pml"])
def test_the_objective(name):
    generator = torch.Generator().manual_seed(0)
    loss = losses.get(name, reduction="none")
    logits, labels = torch.randn(5, 3, generator=generator), torch.rand(5, 3, generator=generator).softmax(-1)
    for prior in ([0.5, 0.3, 0.2], [0.9, 0.1, 0.0]):
        found = joint_loss(loss, logits, labels, torch.tensor(prior), 1.3, 0.7)
        assert float(found) == pytest.approx(by_hand(loss, logits, labels, prior, 1.3, 0.7), rel=1e-5)


def test_cross_entropy_by_hand():
    logits = torch.tensor([[0.0, 0.0], [math.log(3), 0.0]])  # posteriors (1/2, 1/2) and (3/4, 1/4)
    labels = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    found = joint_loss(losses.get("ce", reduction="none"), logits, labels, torch.tensor([0.5, 0.5]), 2.0, 3.0)
    fit = (math.log(2) - 0.5 * math.log(3 / 16)) / 2
    balance = -0.5 * math.log(5 / 4) - 0.5 * math.log(3 / 4)  # the mean posterior is (5/8, 3/8)
    undecided = (math.log(2) - 0.75 * math.log(3 / 4) - 0.25 * math.log(1 / 4)) / 2
    assert float(found) == pytest.approx(fit + 2 * balance + 3 * undecided, rel=1e-6)


def test_a_class_that_is_never_predicted_has_a_finite_loss_and_gradient():
    logits = torch.tensor([[200.0, 0.0, -200.0]]).repeat(4, 1).requires_grad_()
    labels = torch.eye(3)[torch.tensor([0, 1, 2, 2])]
    value = joint_loss(losses.get("ce", reduction="none"), logits, labels, torch.full((3,), 1 / 3), 1.0, 0.5)
    value.backward()
    assert value.isfinite()
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("memory", ["exact", "gradual"])
def test_labels_become_the_mean_posterior_of_the_last_epochs(memory):
    options = ("method.warmup_epochs=3", "method.memory_epochs=2", "method.first_epochs=5", f"method.memory={memory}")
    trainer = trainer_of(*options, "loss=ce")
    given = torch.eye(2)[trainer._truth.labels[0]]
    history, labels = torch.zeros(8, 456, 2), []
    for epoch in range(8):
        for step in trainer.steps(epoch):
            history[epoch, step.rows] = step.logits.detach().softmax(-1)
        labels.append(trainer.method.learnt()["labels"].clone())
    assert torch.equal(labels[0], given)
    assert torch.equal(labels[1], given)
    gradual = history[:2].mean(0)
    for epoch in (2, 3, 4):
        gradual = (gradual + history[epoch]) / 2
        exact = history[epoch - 1 : epoch + 1].mean(0)
        torch.testing.assert_close(labels[epoch], exact if memory == "exact" else gradual)
    for epoch in (5, 6, 7):  # the second network learns labels that stay
        assert torch.equal(labels[epoch], labels[4])


def test_the_second_network_is_new_and_learns_the_rewritten_labels():
    trainer = trainer_of("method.first_epochs=3", "method.warmup_epochs=1", "schedule=cosine", "loss=ce")
    first, second = trainer.resources.networks
    start = {name: tensor.clone() for name, tensor in second.state_dict().items()}
    rates = []
    for epoch in range(3):
        trainer.epoch(epoch)
        rates.append(trainer.resources.optimisers["first"].optimiser.param_groups[0]["lr"])
        inputs = torch.randn(3, 30)
        assert torch.equal(trainer.method.answer(inputs), first(inputs))
    assert rates == [0.05] * 3  # the first network learns at a constant rate
    for name, tensor in second.state_dict().items():
        assert torch.equal(tensor, start[name])
    step = next(trainer.steps(3))
    labels = trainer.method.learnt()["labels"][step.rows]
    expected = -(labels * step.logits.log_softmax(-1)).sum(-1).mean()
    torch.testing.assert_close(step.loss, expected)
    assert trainer.resources.optimisers["second"].optimiser.param_groups[0]["lr"] == 0.05  # its schedule starts here
    assert torch.equal(trainer.method.answer(inputs), second(inputs))


@pytest.mark.parametrize("prior", ["labels", "uniform"])
def test_the_prior(prior):
    trainer = trainer_of(f"method.prior={prior}")
    method, share = trainer.method, trainer._truth.labels[0].float().mean().item()
    expected = [1 - share, share] if prior == "labels" else [0.5, 0.5]
    assert method._prior.tolist() == pytest.approx(expected, abs=1e-6)
    assert abs(share - 0.5) > 0.05


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_short_trainings(epochs):
    trainer = build(small_config("method=joint-optimisation", f"epochs={epochs}")).trainer
    for epoch in range(epochs):
        trainer.epoch(epoch)
    assert int(trainer.method._stage) == 1


@pytest.mark.parametrize(
    "option",
    [
        "prior_weight=-1",
        "entropy_weight=x",
        "prior=equal",
        "memory=ring",
        "first_epochs=-1",
        "warmup_epochs=0.5",
        "memory_epochs=0",
        "first_lr=0",
    ],
)
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=rf"method\.{option.partition('=')[0]} must be"):
        trainer_of(f"method.{option}")


@pytest.mark.parametrize("epoch", [0, 3])
def test_the_terms_beside_the_loss_are_as_strong_as_the_loss(epoch):
    """Also where the loss changes during the training: each epoch asks how strongly it pulls then."""
    options = ("method.prior_weight=3", "method.entropy_weight=2", "method.prior=uniform", "method.first_epochs=4")
    trainer = trainer_of(*options, "loss=sharpened-pml")
    loss = trainer.method.loss.at(epoch / 4)
    strength = pull(loss, 2)
    assert strength == pytest.approx((0.9, 0.25)[epoch > 1], abs=0.03)
    step = next(trainer.steps(epoch))
    labels = torch.eye(2)[next(iter(trainer.batches.epoch(epoch))).labels]
    prior = [0.5, 0.5]
    expected = by_hand(loss, step.logits.detach(), labels, prior, 3 * strength, 2 * strength)
    assert float(step.loss.detach()) == pytest.approx(expected, rel=1e-4)


def test_each_network_sees_the_whole_course_of_the_loss(monkeypatch):
    trainer = trainer_of("method.first_epochs=4")
    shares = []
    plain = type(trainer.method.loss).at
    monkeypatch.setattr(type(trainer.method.loss), "at", lambda loss, share: shares.append(share) or plain(loss, share))
    for epoch in range(8):
        for _ in trainer.method.epoch(EpochWithoutRows(epoch)):
            pass
    assert shares == [0, 0.25, 0.5, 0.75] * 2


class EpochWithoutRows:
    """An epoch in which nothing is trained."""

    def __init__(self, number):
        self.number = number
        self.share = number / 8

    def batches(self):
        return iter(())
