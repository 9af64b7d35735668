"""CTRR: its pairs and its regulariser against loops over rows, and its teacher."""

import math

import pytest
import torch
from small_runs import small_config

from postmax import losses
from postmax.errors import InputError
from postmax.methods.ctrr import pair_weights, regulariser
from postmax.train.build import build


def unit(vector):
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector]


def by_hand(student, teacher, posterior, threshold):
    """The published regulariser, pair after pair."""
    rows, total = range(len(student)), 0.0
    for i in rows:
        agree = [1.0 if i == j else sum(a * b for a, b in zip(posterior[i], posterior[j], strict=True)) for j in rows]
        agree = [value if value >= threshold else 0.0 for value in agree]
        for j in rows:
            similarity = sum(a * b for a, b in zip(unit(student[i]), unit(teacher[j]), strict=True))
            term = 2 - similarity if i == j else 2 + math.log(1 - similarity)
            total += agree[j] / sum(agree) * term
    return total / len(student)


@pytest.mark.parametrize("threshold", [0.0, 0.4, 0.9])
def test_the_regulariser_by_hand(threshold):
    generator = torch.Generator().manual_seed(3)
    student, teacher = torch.randn(2, 6, 5, generator=generator)
    posterior = torch.randn(6, 3, generator=generator).mul(3).softmax(-1)
    expected = by_hand(student.tolist(), teacher.tolist(), posterior.tolist(), threshold)
    found = regulariser(student, teacher, pair_weights(posterior, threshold))
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_equal_projections_have_a_finite_value_and_gradient():
    student = torch.ones(4, 3, requires_grad=True)
    value = regulariser(student, torch.ones(4, 3), pair_weights(torch.full((4, 2), 0.5), 0.1))
    value.backward()
    assert value.isfinite()
    assert student.grad.isfinite().all()


def test_the_regulariser_is_as_strong_as_the_loss():
    """SL with two classes pulls 2/9 as much as cross-entropy."""
    given = losses.get("sl-pml", reduction="none")
    trainer = build(small_config("method=ctrr", "loss=sl-pml", "method.weight=50", "optimiser.lr=1e-9")).trainer
    batch = next(iter(trainer.batches.epoch(0, views=("weak", "contrast", "contrast"))))
    on_labels = given(trainer.method.answer(batch.inputs), batch.labels).mean().item()
    step = next(trainer.steps(0))
    assert step.loss.item() == pytest.approx(on_labels + 50 * 2 / 9 * step.values["regulariser"], rel=1e-5)


def test_pairs_are_of_the_posteriors_of_the_loss():
    """The logits of f-PML are not those of a softmax."""
    loss = losses.get("gan-pml", reduction="none")
    trainer = build(small_config("method=ctrr", "loss=gan-pml", "method.threshold=0.6", "optimiser.lr=1e-9")).trainer
    batch = next(iter(trainer.batches.epoch(0, views=("weak", "contrast", "contrast"))))
    posterior = loss.posterior(trainer.method.answer(batch.inputs)).tolist()
    pairs = sum(
        i == j or sum(a * b for a, b in zip(posterior[i], posterior[j], strict=True)) >= 0.6
        for i in range(64)
        for j in range(64)
    )
    step = next(trainer.steps(0))
    assert step.values["rows of the same class"] == pytest.approx(pairs / 64)


def test_the_teacher_starts_as_a_copy_and_follows_slowly():
    trainer = build(small_config("method=ctrr", "method.decay=0.75", "loss=ce")).trainer
    student, teacher = trainer.resources.networks
    start = [parameter.clone() for parameter in student.parameters()]
    for mine, theirs in zip(teacher.parameters(), start, strict=True):
        assert torch.equal(mine, theirs)
    next(trainer.steps(0))
    for mine, before, theirs in zip(teacher.parameters(), start, student.parameters(), strict=True):
        torch.testing.assert_close(mine, 0.75 * before + 0.25 * theirs)
        assert not torch.equal(mine, before)
    assert all(parameter.grad is None for parameter in teacher.parameters())
    assert trainer.method.answer is student


def test_without_weight_it_is_training_on_the_labels():
    options = ("loss=ce", "epochs=2")
    plain = build(small_config(*options)).trainer
    mine = build(small_config("method=ctrr", "method.weight=0", *options)).trainer
    for number in range(2):
        plain.epoch(number)
        mine.epoch(number)
    for expected, found in zip(plain.method.answer.parameters(), mine.method.answer.parameters(), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("option", ["weight=-1", "threshold=1", "threshold=x", "decay=1", "decay=-0.1"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]}"):
        build(small_config("method=ctrr", f"method.{option}"))
