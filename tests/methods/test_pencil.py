"""PENCIL against its published formulas, written as loops and as automatic derivatives."""

import math

import pytest
import torch
from small_runs import small_config

from postmax import losses
from postmax.errors import InputError
from postmax.methods.parts.pull import pull
from postmax.methods.pencil import label_slope, rewriting_loss
from postmax.train.build import build


def trainer_of(*overrides):
    return build(small_config("method=pencil", "epochs=8", *overrides)).trainer


def random_batch(rows=5, classes=4):
    generator = torch.Generator().manual_seed(1)
    logits, label_logits = (torch.randn(rows, classes, generator=generator) for _ in range(2))
    return logits, 3 * label_logits, torch.randint(classes, (rows,), generator=generator)


@pytest.mark.parametrize("name", ["ce", "gan-pml", "sl-pml"])
def test_the_objective_of_the_second_phase(name):
    loss = losses.get(name, reduction="none")
    logits, label_logits, given = random_batch()
    found = rewriting_loss(loss, logits, label_logits, given, 0.3, 0.2)
    posterior = loss.posterior(logits).tolist()
    for row, p in enumerate(posterior):
        total = sum(math.exp(value) for value in label_logits[row].tolist())
        d = [math.exp(value) / total for value in label_logits[row].tolist()]
        expected = sum(p[k] * math.log(p[k] / d[k]) for k in range(4))
        expected += -0.3 * math.log(d[int(given[row])]) - 0.2 * sum(p[k] * math.log(p[k]) for k in range(4))
        assert float(found[row]) == pytest.approx(expected, rel=1e-4)


def test_the_slope_of_the_labels_is_the_derivative():
    loss = losses.get("gan-pml", reduction="none")
    logits, label_logits, given = random_batch()
    label_logits.requires_grad_()
    (expected,) = torch.autograd.grad(rewriting_loss(loss, logits, label_logits, given, 0.3, 0.2).sum(), label_logits)
    found = label_slope(loss.posterior(logits), label_logits.detach(), given, 0.3)
    torch.testing.assert_close(found, expected)


def test_far_label_logits_have_a_finite_objective():
    loss, label_logits = losses.get("ce", reduction="none"), torch.tensor([[300.0, 0.0, -300.0]])
    logits = torch.tensor([[-200.0, 0.0, 200.0]]).requires_grad_()
    value = rewriting_loss(loss, logits, label_logits, torch.tensor([1]), 0.1, 0.1).sum()
    value.backward()
    assert value.item() == pytest.approx(600 + 0.1 * 300, rel=1e-5)
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("size", [16, 64])
def test_a_step_of_the_labels_does_not_depend_on_the_size_of_the_batch(size):
    trainer = trainer_of("method.warmup_epochs=0", "method.label_rate=0.5", f"batch_size={size}", "loss=ce")
    given = trainer.save().part("state")["label logits"].clone()
    step = next(trainer.steps(0))
    after = trainer.save().part("state")["label logits"]
    labels = trainer.method.learnt()["labels"]
    for row, logits in zip(step.rows.tolist(), step.logits.detach(), strict=True):
        d, p, y = given[row].softmax(-1), logits.softmax(-1), (given[row] > 0).float()
        torch.testing.assert_close(after[row], given[row] - 0.5 * (d - p + 0.1 * (d - y)))
        torch.testing.assert_close(labels[row], after[row].softmax(-1))
    assert len(step.rows) == size
    unseen = torch.ones(len(given), dtype=torch.bool)
    unseen[step.rows] = False
    assert torch.equal(after[unseen], given[unseen])


def test_the_phases():
    trainer = trainer_of("method.warmup_epochs=2", "method.rewriting_epochs=3", "loss=gce", "schedule=cosine")
    loss, labels = losses.get("gce", reduction="none"), []
    for epoch in range(8):
        before = trainer.save().part("state")["label logits"].clone()
        seen = list(trainer.steps(epoch))
        first = seen[0]
        given, d = before[first.rows].argmax(-1) if epoch == 0 else None, before[first.rows].softmax(-1)
        if epoch == 0:
            torch.testing.assert_close(first.loss, loss(first.logits, given).mean())
        if epoch >= 5:
            torch.testing.assert_close(first.loss, loss(first.logits, d).mean())
        labels.append(trainer.method.learnt()["labels"].clone())
        rates = {name: one.optimiser.param_groups[0]["lr"] for name, one in trainer.resources.optimisers.items()}
        assert rates["first"] == 0.05
        assert (rates["last"] < 0.05) == (epoch >= 5)
    assert torch.equal(labels[0], labels[1])
    assert not torch.equal(labels[1], labels[2])
    assert not torch.equal(labels[3], labels[4])
    assert torch.equal(labels[4], labels[7])
    assert labels[0].max(-1).values.min() == pytest.approx(1 / (1 + math.exp(-10)))


@pytest.mark.parametrize(("epochs", "expected"), [(320, 0.46875), (640, 0.234375), (8, 2.0)])
def test_the_labels_can_move_equally_far_in_every_training(epochs, expected):
    assert build(small_config("method=pencil", f"epochs={epochs}")).trainer.method._label_rate == expected


def test_wrong_labels_are_rewritten():
    trainer = trainer_of("epochs=30", "loss=ce", "optimiser.name=adam", "optimiser.lr=0.01")
    truth = trainer._truth
    given, clean = truth.labels[0], truth.clean[0]
    for epoch in range(30):
        trainer.epoch(epoch)
    rewritten = trainer.method.learnt()["labels"].argmax(-1)
    assert (rewritten == clean).float().mean() > (given == clean).float().mean() + 0.1


@pytest.mark.parametrize(
    "option",
    ["compatibility_weight=-1", "entropy_weight=x", "label_rate=-1", "warmup_epochs=-1", "rewriting_epochs=0.5"],
)
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=rf"method\.{option.partition('=')[0]} must be"):
        trainer_of(f"method.{option}")


def test_the_objective_of_the_second_phase_is_as_strong_as_the_loss():
    trainer = trainer_of("method.warmup_epochs=0", "loss=sl-pml")
    label_logits = trainer.save().part("state")["label logits"].clone()
    step = next(trainer.steps(0))
    method, loss = trainer.method, trainer.method.loss
    labels = trainer._truth.labels[0][step.rows]
    found = rewriting_loss(loss, step.logits, label_logits[step.rows], labels, method._compatibility, method._entropy)
    torch.testing.assert_close(step.loss, pull(loss, 2) * found.mean())
    assert pull(loss, 2) < 0.25
