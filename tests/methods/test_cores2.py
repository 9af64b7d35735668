"""CORES² against its published formulas, row by row."""

import math

import pytest
import torch
from small_runs import small_config
from torch import nn
from torch.nn import functional as F

from postmax import losses
from postmax.errors import InputError
from postmax.methods.cores2 import passes, surprises
from postmax.train.build import build

PLAIN = ("loss=ce", "optimiser.momentum=0", "schedule=constant", "model.hidden=[]")


def linear_copy(network):
    copy = nn.Linear(30, 2)
    copy.load_state_dict({key.removeprefix("fc."): value for key, value in network.state_dict().items()})
    return copy


def states(trainer):
    return trainer.save().part("state")


def test_a_row_passes_if_its_surprise_is_at_most_the_mean_over_all_labels():
    posterior = torch.randn(50, 5, generator=torch.Generator().manual_seed(0)).softmax(-1)
    labels = torch.arange(50) % 5
    found = passes(surprises(posterior), labels)
    for row in range(50):
        surprise = [-math.log(p + 1e-8) for p in posterior[row].tolist()]
        assert bool(found[row]) == (surprise[labels[row]] - sum(surprise) / 5 <= 0)
    assert 0 < found.sum() < 50


def test_no_class_that_a_confident_network_excludes_passes():
    """Without the floor under probabilities the second class would pass: it is less surprising than most."""
    posterior = torch.tensor([0.0, -40.0, -60.0, -80.0]).softmax(-1).expand(4, 4)
    assert passes(surprises(posterior), torch.arange(4)).tolist() == [True, False, False, False]


@pytest.mark.parametrize("loss", ["ce", "gce", "sl-pml", "gan-pml", "sharpened-pml"])
def test_the_sieve_sees_the_posterior_of_any_loss(loss):
    loss = losses.get(loss, reduction="none")
    logits = loss.logits_of(torch.tensor([[0.8, 0.1, 0.1], [0.8, 0.1, 0.1]]))
    assert passes(surprises(loss.posterior(logits)), torch.tensor([0, 1])).tolist() == [True, False]


@pytest.mark.parametrize("classes", [2, 7, 1000])
def test_constant_predictions_pass(classes):
    posterior = torch.full((4, classes), 1 / classes)
    assert passes(surprises(posterior), torch.arange(4) % classes).all()


def test_one_step_of_the_sieve_is_the_published_one():
    options = ("method=cores2", "method.beta=1.5", "method.warmup_epochs=0", "method.ramp_epochs=0")
    trainer = build(small_config(*options, "method.unsieved_epochs=0", *PLAIN, "epochs=8")).trainer
    copy = linear_copy(trainer.resources.networks[0])
    labels = states(trainer)["labels that passed"].clone()
    batch = next(iter(trainer.batches.epoch(0)))
    step = next(trainer.steps(0))
    prior = (labels / labels.sum()).tolist()
    assert labels.sum() == 456
    log_p = copy(batch.inputs).log_softmax(-1)
    kept = []
    for row, label in enumerate(batch.labels.tolist()):
        if -log_p[row, label] <= -log_p[row].mean():  # no probability is near the floor
            kept.append(-log_p[row, label] + 1.5 * sum(prior[k] * log_p[row, k] for k in range(2)))
    value = sum(kept) / len(kept)
    assert 0 < len(kept) < 64
    assert step.values["passed"] == pytest.approx(len(kept) / 64)
    assert step.loss.item() == pytest.approx(value.item(), rel=1e-5)
    gradients = torch.autograd.grad(value, list(copy.parameters()))
    moved = trainer.resources.networks[0].parameters()
    for before, gradient, ours in zip(copy.parameters(), gradients, moved, strict=True):
        torch.testing.assert_close(ours, before - 0.05 / 2.5 * gradient)  # the rate is divided by 1 + β


def test_the_reward_is_as_strong_as_the_loss():
    """SL with two classes pulls 2/9 as much as cross-entropy; with all of the reward it would be drowned."""
    options = ("method=cores2", "method.beta=1.5", "method.warmup_epochs=0", "method.ramp_epochs=0")
    trainer = build(small_config(*options, *PLAIN, "loss=sl-pml", "epochs=8")).trainer
    copy, loss = linear_copy(trainer.resources.networks[0]), losses.get("sl-pml", reduction="none")
    labels = states(trainer)["labels that passed"].clone()
    batch = next(iter(trainer.batches.epoch(0)))
    logits = copy(batch.inputs)
    reward = (surprises(loss.posterior(logits)) * (labels / labels.sum())).sum(1)
    expected = (loss(logits, batch.labels) - 2 / 9 * 1.5 * reward).mean()
    assert next(trainer.steps(0)).loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_one_step_of_the_second_phase():
    options = ("method=cores2", "method.consistency_epochs=4", "method.consistency_weight=0.7")
    trainer = build(small_config(*options, *PLAIN, "epochs=8")).trainer
    for epoch in range(4):
        list(trainer.steps(epoch))
    copy = linear_copy(trainer.resources.networks[1])
    steps = trainer.steps(4)
    step = next(steps)
    passed = states(trainer)["passed"]
    labelled = next(iter(trainer.batches.epoch(4, passed.nonzero()[:, 0], stream="labelled")))
    other = next(
        iter(
            trainer.batches.epoch(4, (~passed).nonzero()[:, 0], stream="unlabelled", views=("weak", "strong"), size=48)
        )
    )
    value = F.cross_entropy(copy(labelled.inputs), labelled.labels)
    weak, strong = (copy(view).softmax(-1) for view in other.views)
    value = value + 0.7 * (weak.detach() * (weak.detach() / strong).log()).sum(-1).mean()
    assert step.rows.tolist() == [*labelled.rows.tolist(), *other.rows.tolist()]
    assert step.loss.item() == pytest.approx(value.item(), rel=1e-5)
    gradients = torch.autograd.grad(value, list(copy.parameters()))
    moved = trainer.resources.networks[1].parameters()
    for before, gradient, ours in zip(copy.parameters(), gradients, moved, strict=True):
        torch.testing.assert_close(ours, before - 0.05 * gradient)


def test_phases_follow_the_length_of_the_training():
    trainer = build(small_config("method=cores2", "epochs=20")).trainer
    network, fresh = trainer.resources.networks
    start = fresh.fc.weight.clone()
    shares = {}
    for epoch in range(9):
        step = next(trainer.steps(epoch))
        shares[epoch] = step.values["passed"]
        if epoch == 7:
            assert torch.equal(fresh.fc.weight, start)
            done = network.fc.weight.clone()
    assert {epoch for epoch, share in shares.items() if share == 1} >= set(range(6))
    assert not torch.equal(fresh.fc.weight, start)
    assert torch.equal(network.fc.weight, done)
    assert int(states(trainer)["stage"]) == 1
    assert [found.span for found in trainer.resources.optimisers.values()] == [(8, 20), (0, 8)]


def test_without_a_second_phase_there_is_one_network():
    trainer = build(small_config("method=cores2", "method.consistency_epochs=0")).trainer
    assert len(trainer.resources.networks) == 1
    list(trainer.steps(3))


def test_if_no_row_passes_all_rows_are_used_in_the_next_epoch(monkeypatch):
    monkeypatch.setattr("postmax.methods.cores2.passes", lambda _, labels: torch.zeros_like(labels, dtype=torch.bool))
    options = ("method=cores2", "method.unsieved_epochs=1", "method.consistency_epochs=4", "epochs=8")
    trainer = build(small_config(*options)).trainer
    found = [{step.values["passed"] for step in trainer.steps(epoch)} for epoch in range(5)]
    assert found == [{1.0}, {0.0}, {1.0}, {0.0}, {1.0}]


@pytest.mark.parametrize(("few", "kept"), [(0.0, True), (0.4, True), (0.6, False)])
def test_a_class_of_which_less_than_random_labels_pass_keeps_its_rows(monkeypatch, few, kept):
    def sieve(_, labels):
        others = (labels == 1).nonzero()[:, 0]
        return (labels == 0).index_fill(0, others[: int(few * len(others))], True)

    monkeypatch.setattr("postmax.methods.cores2.passes", sieve)
    options = ("method=cores2", "method.unsieved_epochs=1", "method.consistency_epochs=4", "epochs=8")
    trainer = build(small_config(*options)).trainer
    shares = [{step.values["passed"] == 1 for step in trainer.steps(epoch)} for epoch in range(3)]
    assert shares == [{True}, {False}, {kept}]
    list(trainer.steps(4))
    assert bool(states(trainer)["passed"].all()) == kept


def test_one_labelled_row_is_too_few(monkeypatch):
    monkeypatch.setattr("postmax.methods.cores2.passes", lambda _, labels: torch.arange(len(labels)) == 0)
    trainer = build(small_config("method=cores2", "epochs=8")).trainer
    trainer.method._labels.zero_()
    assert {step.values["passed"] for step in trainer.steps(3)} == {1}


@pytest.mark.parametrize(
    "option", ["beta=-1", "warmup_epochs=1.5", "unsieved_epochs=-1", "consistency_epochs=x", "consistency_weight=-1"]
)
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]}"):
        build(small_config("method=cores2", f"method.{option}"))


def test_an_unknown_view():
    with pytest.raises(InputError, match=r"unknown view 'strnog'.*strong"):
        build(small_config("method=cores2", "method.view=strnog"))
