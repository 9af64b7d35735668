"""ELR against its published formulas, written as loops over rows and classes."""

import math

import pytest
import torch
from small_runs import small_config

from postmax import losses, methods
from postmax.errors import InputError
from postmax.methods.parts.early_learning import early_learning, remember
from postmax.methods.parts.pull import pull
from postmax.train.build import build


def test_one_step_is_the_published_one():
    config = small_config("method=elr", "method.memory=0.6", "method.weight=2", "loss=ce", "model.hidden=[]")
    trainer = build(config).trainer
    batch = next(iter(trainer.batches.epoch(0)))
    old = 0.3 * torch.rand(456, 2, generator=torch.Generator().manual_seed(0))
    trainer.save().part("state")["targets"].copy_(old)
    logits = trainer.method.answer(batch.inputs).detach()
    expected, targets = 0.0, {}
    for row, (label, index) in enumerate(zip(batch.labels.tolist(), batch.rows.tolist(), strict=True)):
        total = sum(math.exp(float(z)) for z in logits[row])
        p = [math.exp(float(z)) / total for z in logits[row]]
        targets[index] = [0.6 * float(old[index, k]) + 0.4 * p[k] for k in range(2)]
        overlap = sum(targets[index][k] * p[k] for k in range(2))
        expected += (-math.log(p[label]) + 2 * math.log(1 - overlap)) / len(batch.labels)
    step = next(trainer.steps(0))
    assert float(step.loss.detach()) == pytest.approx(expected, rel=1e-5)
    found = trainer.save().part("state")["targets"]
    for index in range(456):
        wanted = targets.get(index, old[index].tolist())
        assert found[index].tolist() == pytest.approx(wanted, rel=1e-5)


def test_the_term_is_finite_and_has_its_gradient_where_targets_and_posterior_are_sure():
    logits = torch.tensor([[40.0, 0.0, 0.0], [-40.0, 0.0, 0.0], [0.5, 0.0, -1.0]], requires_grad=True)
    targets = torch.zeros(3, 3)
    for _ in range(200):
        remember(targets, torch.arange(3), logits.softmax(-1), 0.5)
    values = early_learning(targets, logits.softmax(-1))
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    assert values.isfinite().all()
    exact = logits.detach().double().requires_grad_()
    truth = (1 - (targets.double() * exact.softmax(-1)).sum(-1)).log()
    (expected,) = torch.autograd.grad(truth.sum(), exact)
    torch.testing.assert_close(values.double(), truth, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(gradient.double(), expected, rtol=1e-3, atol=1e-7)


def test_a_sure_target_outweighs_a_label_that_contradicts_it():
    """The gradient of the term points to the target wherever the posterior is, also beyond the published floor."""
    for z in (0.0, 5.0, 12.0):
        logits = torch.tensor([[z, 0.0]], requires_grad=True)
        targets = remember(torch.zeros(1, 2), torch.tensor([0]), torch.tensor([[0.9, 0.1]]), 0.0)
        (gradient,) = torch.autograd.grad(early_learning(targets, logits.softmax(-1)).sum(), logits)
        assert gradient[0, 0] < 0 < gradient[0, 1]


def test_presets():
    found = methods.describe("elr").presets
    assert found["cifar100"].options == {"memory": 0.9, "weight": 7.0}
    trainer = build(small_config("method=elr", "method.preset=cifar10-asymmetric", "loss=ce")).trainer
    assert trainer.method._weight == pytest.approx(1.0)


@pytest.mark.parametrize(("loss", "expected"), [("ce", 1.0), ("gce", 0.2**0.7), ("sl-pml", 1 / 1.2**2 / 1.0 * 0.2)])
def test_how_strongly_a_loss_pulls(loss, expected):
    """By hand for five classes. The slope of SL is f''(D) = 1/(1 + D)², that of −log D is 1/D, and D is 1/5."""
    assert pull(losses.get(loss, reduction="none"), 5) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("option", ["memory=1", "memory=-0.1", "weight=-1", "weight=x"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]} must be a number"):
        build(small_config("method=elr", f"method.{option}"))
