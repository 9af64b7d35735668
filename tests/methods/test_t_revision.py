"""T-Revision against its formula written as loops, and what each of its stages moves."""

import pytest
import torch
from small_runs import outcome, small_config, stop_after

import postmax as pm
from postmax.errors import InputError
from postmax.methods.t_revision import revision_losses
from postmax.runs import execute
from postmax.train.build import build

MATRIX = torch.tensor([[0.7, 0.2, 0.1], [0.0, 0.9, 0.1], [0.3, 0.0, 0.7]], dtype=torch.float64)
LABELS = torch.tensor([0, 2, 1, 1])


def plain(name):
    return pm.losses.get(name, reduction="none")


def some_logits():
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).double()


def built(*overrides):
    return build(small_config("method=t-revision", "epochs=6", "loss=ce", *overrides)).trainer


def test_the_weighted_loss_has_a_gradient_through_its_weights():
    """Against −log p_y·p_y/(pT)_y, entry by entry, and its derivatives by the logits and by T."""

    def by_hand(logits, matrix):
        rows = []
        for row, label in zip(logits.softmax(-1), LABELS.tolist(), strict=True):
            given = sum(row[i] * matrix[i, label] for i in range(3))
            rows.append(-row[label].log() * row[label] / given)
        return torch.stack(rows)

    logits, matrix = some_logits().requires_grad_(), MATRIX.clone().requires_grad_()
    found, expected = revision_losses(plain("ce"), logits, LABELS, matrix, 100.0), by_hand(logits, matrix)
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-6)
    ours = torch.autograd.grad(found.sum(), [logits, matrix])
    for mine, theirs in zip(ours, torch.autograd.grad(expected.sum(), [logits, matrix]), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-9, rtol=1e-6)
        assert mine.abs().max() > 0.01


@pytest.mark.parametrize("name", ["sl-pml", "gan-pml", "js-pml", "kl-pml"])
def test_a_label_that_is_learnt_costs_nothing_whatever_the_smallest_loss_is(name):
    loss = plain(name)
    sure = torch.full((1, 3), 1e-9, dtype=torch.float64).scatter(1, torch.tensor([[1]]), 1.0)
    found = revision_losses(loss, loss.logits_of(sure / sure.sum()), torch.tensor([1]), MATRIX, 10.0)
    assert float(found) == pytest.approx(0, abs=1e-4)
    assert (revision_losses(loss, some_logits(), LABELS, MATRIX, 10.0) > 0).all()


@pytest.mark.parametrize("name", ["ce", "gce", "sl-pml", "gan-pml", "sharpened-pml"])
@pytest.mark.parametrize("matrix", [torch.eye(3, dtype=torch.float64), MATRIX])
def test_a_network_that_is_sure_of_something_else_has_a_finite_gradient(name, matrix):
    logits = torch.tensor([[900.0, -900.0, -900.0], [-900.0, 900.0, 0.0]]).requires_grad_()
    matrix = matrix.clone().requires_grad_()
    for label in range(3):
        value = revision_losses(plain(name), logits, torch.tensor([label, label]), matrix, 10.0).sum()
        assert value.isfinite()
        assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(value, [logits, matrix]))


def test_the_matrix_moves_in_the_third_stage_alone_and_stays_a_transition_matrix():
    trainer = built("method.estimation_epochs=2", "method.revision_epochs=2", "method.revision_lr=0.05")
    method, found = trainer.method, []
    for number in range(6):
        trainer.epoch(number)
        found.append(method.learnt()["transition"].clone())
    assert torch.equal(found[1], torch.eye(2, dtype=torch.float64))
    assert torch.equal(found[2], found[3])
    assert not torch.equal(found[3], found[4])
    assert not torch.equal(found[4], found[5])
    assert torch.equal(method.learnt()["estimated_transition"], found[3])
    assert (found[5] >= 0).all()
    torch.testing.assert_close(found[5].sum(1), torch.ones(2, dtype=torch.float64))
    # The posterior of the labels uses the revised matrix.
    outputs = torch.randn(3, 2)
    expected = method.readings(outputs)["model"] @ found[5].float()
    torch.testing.assert_close(method.label_posterior(outputs), expected)


def test_the_network_alone_can_be_trained_in_the_third_stage():
    trainer = built("method.estimation_epochs=2", "method.revision_epochs=2", "method.revise=false")
    for number in range(4):
        trainer.epoch(number)
    before = [parameter.clone() for parameter in trainer.method.answer.parameters()]
    matrix = trainer.method.learnt()["transition"].clone()
    record = trainer.epoch(4)[0]
    assert record["method"]["revision"] == 0
    assert torch.equal(trainer.method.learnt()["transition"], matrix)
    assert any(not torch.equal(a, b) for a, b in zip(before, trainer.method.answer.parameters(), strict=True))


def test_by_default_a_number_moves_as_far_as_published():
    trainer = built("method.estimator=given", "noise=binary:0.1,0.3")
    optimiser = trainer.resources.optimisers["transition"]
    assert optimiser.schedule is None
    assert optimiser.config.lr * 3 * len(trainer.batches) == pytest.approx(5e-7 * 200 * 352)
    # The schedule of the second stage ends where the third one begins.
    assert trainer.resources.optimisers["main"].span == (0, 3)


@pytest.mark.parametrize("fresh", ["true", "false"])
def test_it_continues_exactly_in_each_stage(tmp_path, fresh):
    options = (f"method.fresh={fresh}", "method.estimation_epochs=2", "method.revision_epochs=2")
    config = small_config("method=t-revision", "epochs=6", *options)
    execute(config, tmp_path / "whole")
    for epochs in (2, 3, 4, 5):
        stop_after(config, tmp_path / f"{epochs}", epochs)
        execute(config, tmp_path / f"{epochs}")
        assert outcome(tmp_path / f"{epochs}") == outcome(tmp_path / "whole")


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_a_very_short_run(epochs):
    trainer = build(small_config("method=t-revision", f"epochs={epochs}")).trainer
    for number in range(epochs):
        trainer.epoch(number)
    assert trainer.method.learnt()["transition"].isfinite().all()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("revision_epochs=-1", "method.revision_epochs must be a whole number of at least 0"),
        ("revision_lr=0", "method.revision_lr must be a number above 0"),
        ("revise=maybe", "method.revise must be true or false"),
    ],
)
def test_options_that_cannot_be(option, message):
    with pytest.raises(InputError, match=message):
        built(f"method.{option}")


@pytest.mark.parametrize(("epochs", "networks"), [(40, 1), (80, 2)])
def test_a_new_network_has_a_second_stage_of_at_least_20_epochs(epochs, networks):
    trainer = build(small_config("method=t-revision", f"epochs={epochs}")).trainer
    assert len(trainer.resources.networks) == networks
