"""Regularisation between representations: the gap of distances against a loop over pairs, and its phases."""

import math

import pytest
import torch
from small_runs import small_config

from postmax.errors import InputError
from postmax.methods.representation_regularisation import distance_gap
from postmax.train.build import build

NAME = "representation-regularisation"


def squared(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def scaled(values):
    positive = [value for value in values if value > 0]
    return [value / (sum(positive) / len(positive)) for value in values]


def by_hand(posterior, projection):
    """The published regulariser, pair after pair."""
    pairs = [(i, j) for i in range(len(posterior)) for j in range(len(posterior))]
    of_outputs = scaled([math.sqrt(squared(posterior[i], posterior[j])) for i, j in pairs])
    of_features = scaled([squared(projection[i], projection[j]) for i, j in pairs])
    gaps = [abs(a - b) for a, b in zip(of_outputs, of_features, strict=True)]
    return sum(0.5 * gap**2 if gap < 1 else gap - 0.5 for gap in gaps) / len(gaps)


@pytest.mark.parametrize(("rows", "classes"), [(3, 2), (7, 4), (30, 3)])
def test_the_gap_by_hand(rows, classes):
    generator = torch.Generator().manual_seed(rows)
    posterior = torch.randn(rows, classes, generator=generator).mul(3).softmax(-1)
    projection = 5 * torch.randn(rows, 6, generator=generator)
    expected = by_hand(posterior.tolist(), projection.tolist())
    assert distance_gap(posterior, projection).item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("what", ["posterior", "projection", "both"])
def test_constant_rows_have_a_finite_gap_and_gradient(rows, what):
    generator = torch.Generator().manual_seed(0)
    posterior = torch.full((rows, 3), 1 / 3) if what != "projection" else torch.rand(rows, 3, generator=generator)
    projection = torch.ones(rows, 4) if what != "posterior" else torch.rand(rows, 4, generator=generator)
    posterior.requires_grad_(), projection.requires_grad_()
    value = distance_gap(posterior, projection)
    value.backward()
    for tensor in (value, posterior.grad, projection.grad):
        assert tensor.isfinite().all()


def test_the_three_terms_are_added():
    """Both terms without labels are as strong as the loss: GAN with two classes pulls 2/3 as much as cross-entropy."""
    options = (f"method={NAME}", "loss=gan-pml", "method.contrast_weight=0.25", "method.gap_weight=3")
    trainer = build(small_config(*options, "optimiser.lr=1e-9")).trainer
    views = ("weak", "contrast", "contrast")
    batch = next(iter(trainer.batches.epoch(0, views=views)))
    logits = trainer.method.answer(batch.inputs)
    on_labels = trainer.method.loss(logits, batch.labels).mean().item()
    step = next(trainer.steps(0))
    expected = on_labels + 2 / 3 * (0.25 * step.values["contrast"] + 3 * step.values["gap"])
    assert step.loss.item() == pytest.approx(expected, rel=1e-5)


def test_the_warm_up_is_the_loss_on_the_labels_alone():
    options = ("loss=ce", "epochs=4")
    trainer = build(small_config(f"method={NAME}", "method.warmup_epochs=2", *options)).trainer
    plain = build(small_config(*options)).trainer
    records = [trainer.epoch(number)[0] for number in range(4)]
    expected = [plain.epoch(number)[0]["loss"] for number in range(2)]
    assert ["method" in record for record in records] == [False, False, True, True]
    assert [record["loss"] for record in records[:2]] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("option", ["contrast_weight=-1", "gap_weight=x", "temperature=0", "warmup_epochs=1.5"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]}"):
        build(small_config(f"method={NAME}", f"method.{option}"))
