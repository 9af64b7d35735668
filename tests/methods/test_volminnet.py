"""VolMinNet against its published objective, written as a loop."""

import math

import numpy as np
import pytest
import torch
from small_runs import small_config

from postmax.errors import InputError
from postmax.estimation.diagonal_form import log_volume
from postmax.train.build import build


def test_a_step_minimises_the_published_objective():
    config = small_config("method=volminnet", "method.volume_weight=0.5", "loss=ce", "method.transition_optimiser=sgd")
    trainer = build(config).trainer
    off = trainer.method._off
    with torch.no_grad():
        off.copy_(torch.tensor([[0.3, -1.0], [-2.0, 0.1]]))
    batch = next(iter(trainer.batches.epoch(0)))
    probabilities = trainer.method.answer(batch.inputs).softmax(1).detach().double().numpy()
    first, second = 1 / (1 + math.exp(1.0)), 1 / (1 + math.exp(2.0))
    matrix = np.array([[1 / (1 + first), first / (1 + first)], [second / (1 + second), 1 / (1 + second)]])
    fit = -np.mean([math.log(probabilities[row] @ matrix[:, y]) for row, y in enumerate(batch.labels.tolist())])
    before = off.detach().clone()
    step = next(trainer.steps(0))
    assert float(step.loss.detach()) == pytest.approx(fit + 0.5 * math.log(np.linalg.det(matrix)), abs=1e-5)
    assert step.values["kept_labels"] == pytest.approx(np.diag(matrix).mean())
    moved = (off.detach() - before).abs()
    assert (moved[[0, 1], [1, 0]] > 0).all()
    assert (moved.diagonal() == 0).all()


def test_the_matrix_learns_which_class_loses_its_labels():
    trainer = build(small_config("method=volminnet", "loss=ce", "epochs=20", "noise=binary:0.05,0.4")).trainer
    start = trainer.method.learnt()["transition"]
    assert float(start[0, 1]) == float(start[1, 0])
    for number in range(20):
        trainer.epoch(number)
    found = trainer.method.learnt()["transition"]
    torch.testing.assert_close(found.sum(1), torch.ones(2, dtype=torch.float64))
    assert float(found[0, 1]) > float(found[1, 0]) + 0.1
    outputs = torch.randn(4, 2)
    posterior = trainer.method.readings(outputs)["model"]
    torch.testing.assert_close(trainer.method.label_posterior(outputs), posterior @ found.float())


@pytest.mark.parametrize("k", [2, 1000])
def test_the_volume_of_a_singular_matrix_is_finite(k):
    matrix = torch.full((k, k), 1 / k, requires_grad=True)
    value = log_volume(matrix)
    (gradient,) = torch.autograd.grad(value, matrix)
    assert value.isfinite()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("option", ["volume_weight=-1", "transition_lr=0", "transition_lr=x"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]} must be a number"):
        build(small_config("method=volminnet", f"method.{option}"))


def test_losses_that_cannot_be():
    with pytest.raises(InputError, match="corrected already"):
        build(small_config("method=volminnet", "loss=forward"))
    with pytest.raises(InputError, match="cannot express every posterior"):
        build(small_config("method=volminnet", "loss=logit-clip"))
