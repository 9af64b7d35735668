"""NLNL: the loss of other classes, which rows are selected, what labels they get, and the phases."""

import math

import pytest
import torch
from small_runs import small_config

from postmax import losses
from postmax.errors import InputError
from postmax.methods.nlnl import negative_losses, pseudo_labels, selected
from postmax.train.build import build

LOGITS = 2 * torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 3, 1, 1, 2])


def trainer_of(*overrides, epochs=6):
    return build(small_config("method=nlnl", f"epochs={epochs}", *overrides)).trainer


def state(trainer, name):
    return trainer.save().part("state")[name].clone()


# What rows are not


@pytest.mark.parametrize("name", ["ce", "gan-pml"])
def test_the_loss_is_the_mean_over_the_other_classes(name):
    loss = losses.get(name)
    found = negative_losses(loss, LOGITS, LABELS, 2)
    for row, label in enumerate(LABELS.tolist()):
        p = loss.posterior(LOGITS.double())[row].tolist()
        expected = sum(-math.log(1 - p[k]) for k in range(4) if k != label) / 3
        assert float(found[row]) == pytest.approx(2 * expected, rel=1e-5)


def test_it_is_what_classes_drawn_at_random_give_on_average():
    generator = torch.Generator().manual_seed(0)
    drawn = (LABELS[:, None] + torch.randint(1, 4, (5, 40_000), generator=generator)) % 4
    surprise = -(1 - LOGITS.softmax(-1)).log()
    torch.testing.assert_close(
        negative_losses(losses.get("ce"), LOGITS, LABELS, 1), surprise.gather(1, drawn).mean(1), rtol=0.03, atol=0.01
    )


def test_for_cross_entropy_it_is_the_loss_of_that_name():
    expected = losses.get("nlnl", reduction="none")(LOGITS, LABELS)
    torch.testing.assert_close(negative_losses(losses.get("ce"), LOGITS, LABELS, 1), expected)


@pytest.mark.parametrize("name", ["ce", "sl-pml", "gan-pml"])
def test_a_class_of_which_the_network_is_sure_is_still_unlearnt(name):
    logits = torch.tensor([[25.0, 0.0, 0.0], [900.0, -900.0, 0.0]], requires_grad=True)
    found = negative_losses(losses.get(name), logits, torch.tensor([1, 1]), 1)
    (gradient,) = torch.autograd.grad(found.sum(), logits)
    assert found.isfinite().all()
    assert gradient.isfinite().all()
    if name == "ce":  # the slope of −log(1 − p) by its own logit is p, and half of it is the mean of two classes
        assert float(gradient[0, 0]) == pytest.approx(0.5, abs=1e-3)


# Which rows, and which labels


def test_selected_rows():
    belief = torch.tensor([0.5, 0.2, 0.49, 0.9, 0.0])
    assert selected(belief, 0.5).tolist() == [True, False, False, True, False]
    assert selected(belief, 0.6, 0.45).tolist() == [True, False, True, True, False]
    assert selected(belief, 0.95, 0.91).tolist() == [True] * 5
    assert selected(torch.zeros(3), 0.5, 0.1).tolist() == [True] * 3
    assert selected(belief, 0.0).all()


def test_the_third_network_learns_kept_labels_and_guesses():
    guesses = torch.tensor([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.0, 0.5]])
    found = pseudo_labels(torch.tensor([1, 0, 2]), torch.tensor([True, False, True]), guesses)
    assert torch.equal(found, torch.tensor([[0.0, 1.0, 0.0], [0.3, 0.3, 0.4], [0.0, 0.0, 1.0]]))


# The phases


def test_the_three_phases():
    trainer = trainer_of("loss=gce", "method.memory_epochs=2", "method.confidence=0.6")
    labels, loss = trainer._truth.labels[0], losses.get("gce", reduction="none")
    beliefs = []
    for epoch in range(6):
        mean = torch.stack(beliefs[-2:]).mean(0) if beliefs else torch.zeros(456)
        threshold = 0.0 if epoch < 2 else 0.5 if epoch < 4 else 0.6
        now = torch.zeros(456)
        for step in trainer.steps(epoch):
            given, picked = labels[step.rows], mean[step.rows] >= threshold
            logits = step.logits.detach()
            if epoch < 4:
                expected = negative_losses(loss, logits[picked], given[picked], 1).mean()
            else:
                expected = loss(logits[picked], given[picked]).mean()
            torch.testing.assert_close(step.loss.detach(), expected)
            assert step.values["selected"] == pytest.approx(float(picked.float().mean()))
            now[step.rows] = loss.posterior(logits).gather(1, given[:, None])[:, 0]
        beliefs.append(now)
    assert 0 < float(picked.float().mean()) < 1
    torch.testing.assert_close(trainer.method.learnt()["belief"], torch.stack(beliefs[-2:]).mean(0))


@pytest.mark.parametrize(
    ("epochs", "pseudo", "starts", "spans"),
    [
        (2160, False, (720, 1440), [(0, 2160)]),
        (3120, True, (720, 1440), [(0, 2160), (2160, 2640), (2640, 3120)]),
        (12, False, (4, 8), [(0, 12)]),
        (1, False, (0, 0), [(0, 1)]),
        (2, True, (1, 2), [(0, 2)]),
        (3, True, (1, 2), [(0, 1), (1, 2), (2, 3)]),
    ],
)
def test_the_phases_scale(epochs, pseudo, starts, spans):
    method = trainer_of(f"method.pseudo={str(pseudo).lower()}", epochs=epochs).method
    assert (method._selective_start, method._positive_start) == starts
    assert method._spans == spans


def test_with_pseudo_labels_three_networks_answer_in_turn():
    trainer = trainer_of("method.pseudo=true", "loss=gce", "method.memory_epochs=2", epochs=13)
    method, networks, labels = trainer.method, trainer.resources.networks, trainer._truth.labels[0]
    assert method._spans == [(0, 9), (9, 11), (11, 13)]
    inputs, loss = trainer._plain.dataset.inputs.float(), losses.get("gce", reduction="none")
    for epoch in range(9):
        trainer.epoch(epoch)
        assert torch.equal(method.answer(inputs), networks[0](inputs))
    belief = method.learnt()["belief"].clone()
    kept = belief >= 0.5
    assert 0 < kept.float().mean() < 1
    seen, guesses = [], []
    for epoch in (9, 10):
        seen += [step.rows for step in trainer.steps(epoch)]
        networks[1].eval()
        guesses.append(loss.posterior(networks[1](inputs)).detach())
        assert torch.equal(method.answer(inputs), networks[1](inputs))
    assert torch.equal(state(trainer, "kept"), kept)
    assert torch.equal(torch.cat(seen).unique(), kept.nonzero()[:, 0])
    targets = pseudo_labels(labels, kept, torch.stack(guesses).mean(0))
    for step in trainer.steps(11):
        expected = loss(step.logits, targets[step.rows]).mean()
        torch.testing.assert_close(step.loss, expected, rtol=1e-4, atol=1e-5)
    trainer.epoch(12)
    assert torch.equal(method.answer(inputs), networks[2](inputs))


def test_a_batch_without_selected_rows_changes_nothing():
    trainer = trainer_of("method.negative_epochs=1", "method.selective_epochs=0", "batch_size=4", "loss=ce")
    trainer.epoch(0)
    belief = trainer.resources._tensors["belief, values"]
    belief.zero_()
    belief[:2] = 1.0  # two rows are believed
    empty = [step for step in trainer.steps(1) if step.values["selected"] == 0]
    assert len(empty) >= 112
    assert all(step.loss.item() == 0 for step in empty)


def test_it_believes_right_labels_more_than_wrong_ones():
    trainer = trainer_of("optimiser.name=adam", "optimiser.lr=0.01", epochs=12)
    truth = trainer._truth
    right = truth.labels[0] == truth.clean[0]
    for epoch in range(12):
        trainer.epoch(epoch)
    belief = trainer.method.learnt()["belief"]
    assert belief[right].mean() > belief[~right].mean() + 0.3


@pytest.mark.parametrize(
    "option",
    ["complements=0", "confidence=1", "negative_epochs=-1", "selective_epochs=0.5", "memory_epochs=0"],
)
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=rf"method\.{option.partition('=')[0]} must be"):
        trainer_of(f"method.{option}")
