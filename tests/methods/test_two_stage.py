"""Corrections in two stages, against their formulas written as loops, and what happens between the stages."""

import math

import pytest
import torch
from small_runs import outcome, small_config, stop_after

import postmax as pm
from postmax.errors import InputError
from postmax.methods.parts.calibration import calibrated
from postmax.methods.parts.corrections import backward_losses, forward_losses, importance
from postmax.methods.parts.noise_matrix import invertible
from postmax.runs import execute
from postmax.train.build import build

MATRIX = torch.tensor([[0.7, 0.2, 0.1], [0.0, 0.9, 0.1], [0.3, 0.0, 0.7]], dtype=torch.float64)
LABELS = torch.tensor([0, 2, 1, 1])
METHODS = ("two-stage-forward", "two-stage-backward", "two-stage-reweighting", "dual-t", "hoc-forward")


def some_logits():
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(0))


def plain(name):
    return pm.losses.get(name, reduction="none")


# The corrected losses


@pytest.mark.parametrize(
    ("name", "of_probability"), [("ce", lambda q: -math.log(q)), ("gce", lambda q: (1 - q**0.7) / 0.7)]
)
def test_forward_is_the_loss_of_the_probability_of_the_label(name, of_probability):
    found = forward_losses(plain(name), some_logits(), LABELS, MATRIX)
    for row, (logits, label) in enumerate(zip(some_logits(), LABELS.tolist(), strict=True)):
        p = logits.softmax(-1).tolist()
        q = sum(p[i] * float(MATRIX[i, label]) for i in range(3))
        assert float(found[row]) == pytest.approx(of_probability(q), rel=1e-5)


@pytest.mark.parametrize("name", ["ce", "gce", "mae", "sl-pml", "gan-pml", "sharpened-pml"])
def test_without_noise_forward_is_the_loss_of_the_posterior(name):
    loss, keeps = plain(name), torch.eye(3)
    posterior = loss.posterior(some_logits())
    expected = loss(loss.logits_of(posterior), LABELS)
    torch.testing.assert_close(forward_losses(loss, some_logits(), LABELS, keeps), expected)


@pytest.mark.parametrize("name", ["ce", "gce", "sl-pml", "gan-pml", "sharpened-pml"])
@pytest.mark.parametrize("matrix", [torch.eye(3), MATRIX])
def test_forward_is_finite_for_a_network_that_is_sure(name, matrix):
    logits = torch.tensor([[200.0, -200.0, -200.0], [-200.0, 200.0, 0.0]]).requires_grad_()
    for label in range(3):
        value = forward_losses(plain(name), logits, torch.tensor([label, label]), matrix).sum()
        (gradient,) = torch.autograd.grad(value, logits)
        assert value.isfinite()
        assert gradient.isfinite().all()


@pytest.mark.parametrize("name", ["ce", "gce", "mae", "sl-pml", "gan-pml"])
def test_backward_weighs_the_losses_of_all_labels(name):
    loss, inverse = plain(name), MATRIX.inverse()
    found = backward_losses(loss, some_logits(), LABELS, inverse)
    for row, label in enumerate(LABELS.tolist()):
        each = [float(loss(some_logits()[row : row + 1], torch.tensor([j]))) for j in range(3)]
        assert float(found[row]) == pytest.approx(sum(float(inverse[label, j]) * each[j] for j in range(3)), rel=1e-4)


@pytest.mark.parametrize("name", ["ce", "sl-pml"])
def test_the_mean_of_backward_over_noisy_labels_is_the_loss_of_the_true_one(name):
    loss, logits = plain(name), some_logits()[:1].expand(3, -1)
    each = backward_losses(loss, logits, torch.arange(3), MATRIX.inverse())
    torch.testing.assert_close(MATRIX.float() @ each, loss(logits, torch.arange(3)))


def test_with_a_floor_backward_stops_falling():
    sure = [torch.tensor([[scale, 0.0, 0.0]]) for scale in (20.0, 40.0)]
    inverse, label = MATRIX.inverse(), torch.tensor([0])
    without = [float(backward_losses(plain("ce"), logits, label, inverse)) for logits in sure]
    bounded = [float(backward_losses(plain("ce"), logits, label, inverse, 0.01)) for logits in sure]
    assert without[1] < without[0] - 1
    assert bounded[1] == pytest.approx(bounded[0], abs=1e-4)
    # Above the floor nothing changes.
    torch.testing.assert_close(
        backward_losses(plain("ce"), some_logits(), LABELS, inverse, 1e-6),
        backward_losses(plain("ce"), some_logits(), LABELS, inverse),
    )


def test_weights_are_those_of_labels_without_noise():
    posterior = some_logits().double().softmax(-1)
    found = importance(posterior, LABELS, MATRIX, 10.0)
    for row, label in enumerate(LABELS.tolist()):
        given = sum(float(posterior[row, i] * MATRIX[i, label]) for i in range(3))
        assert float(found[row]) == pytest.approx(float(posterior[row, label]) / given)


def test_weights_that_have_no_bound_are_capped():
    swapped = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    sure = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert importance(sure, torch.tensor([0, 0]), swapped, 5.0).tolist() == [5.0, 0.0]


# The matrix


def test_a_matrix_that_can_be_inverted_stays():
    found, share = invertible(MATRIX)
    assert share == 0
    assert torch.equal(found, MATRIX)


@pytest.mark.parametrize("k", [2, 10])
def test_a_singular_matrix_gets_a_little_of_the_identity(k):
    found, share = invertible(torch.full((k, k), 1 / k, dtype=torch.float64))
    assert 0 < share <= 0.05
    torch.testing.assert_close(found.sum(1), torch.ones(k, dtype=torch.float64))
    assert torch.linalg.cond(found) <= 1000


@pytest.mark.parametrize("power", [0.3, 4.0])
def test_calibration_finds_the_power_that_fits_the_labels(power):
    generator = torch.Generator().manual_seed(1)
    true = (2 * torch.randn(3000, 3, generator=generator, dtype=torch.float64)).softmax(1)
    labels = torch.multinomial(true, 1, generator=generator).squeeze(1)
    wrong = true**power / (true**power).sum(1, keepdim=True)
    found = calibrated(wrong, labels, torch.arange(2000))
    assert (found - true).abs().max() < 0.05
    grid = [math.exp(step / 20) for step in range(-40, 41)]
    fits = [float((a * wrong.log()).log_softmax(1)[range(2000), labels[:2000]].mean()) for a in grid]
    assert float(found.log()[range(2000), labels[:2000]].mean()) >= max(fits) - 1e-9


# The two stages


def built(*overrides):
    return build(small_config("method=two-stage-forward", "epochs=6", *overrides)).trainer


def test_the_matrix_is_estimated_between_the_stages():
    trainer = built("method.estimation_epochs=2", "method.fresh=true")
    method, (first, second) = trainer.method, trainer.resources.networks
    inputs = torch.randn(5, 30)
    for number in range(2):
        trainer.epoch(number)
        assert torch.equal(method.learnt()["transition"], torch.eye(2, dtype=torch.float64))
        assert torch.equal(method.answer(inputs), first(inputs))
    before = {name: tensor.clone() for name, tensor in first.state_dict().items()}
    record = trainer.epoch(2)[0]
    found = method.learnt()["transition"]
    assert 0.02 < record["method"]["estimated_noise"] < 0.5
    torch.testing.assert_close(found.sum(1), torch.ones(2, dtype=torch.float64))
    assert torch.equal(method.answer(inputs), second(inputs))
    assert all(torch.equal(tensor, before[name]) for name, tensor in first.state_dict().items())
    trainer.epoch(3)
    assert torch.equal(method.learnt()["transition"], found)


def test_a_tenth_of_the_rows_is_held_out_before_the_estimate():
    trainer = built("method.estimation_epochs=1")
    count = len(trainer.method._noise._labels)
    seen = [torch.cat([step.rows for step in trainer.steps(number)]).unique() for number in (0, 1)]
    assert len(seen[0]) == count - int(0.1 * count)
    assert len(seen[1]) == count


@pytest.mark.parametrize(("epochs", "networks"), [(10, 1), (40, 2)])
def test_a_short_run_goes_on_with_the_first_network(epochs, networks):
    trainer = build(small_config("method=two-stage-backward", f"epochs={epochs}")).trainer
    assert len(trainer.resources.networks) == networks


@pytest.mark.parametrize("method", METHODS)
def test_noise_that_is_given_needs_no_first_stage(method):
    trainer = build(small_config(f"method={method}", "method.estimator=given", "noise=binary:0.1,0.3")).trainer
    assert len(trainer.resources.networks) == 1
    given = pm.Transition.binary(0.1, 0.3).matrix
    torch.testing.assert_close(trainer.method.learnt()["transition"], given)
    assert "estimated_noise" in trainer.epoch(0)[0]["method"]
    outputs = torch.randn(4, 2)
    posterior = trainer.method.readings(outputs)["model"]
    torch.testing.assert_close(trainer.method.label_posterior(outputs), posterior @ given.float())


def test_one_epoch_is_a_plain_training():
    trainer = build(small_config("method=two-stage-forward", "epochs=1")).trainer
    trainer.epoch(0)
    assert torch.equal(trainer.method.learnt()["transition"], torch.eye(2, dtype=torch.float64))


def test_a_run_with_a_new_network_continues_exactly(tmp_path):
    config = small_config("method=two-stage-backward", "method.fresh=true", "epochs=4")
    execute(config, tmp_path / "whole")
    for epochs in (2, 3):
        stop_after(config, tmp_path / f"{epochs}", epochs)
        execute(config, tmp_path / f"{epochs}")
        assert outcome(tmp_path / f"{epochs}") == outcome(tmp_path / "whole")


@pytest.mark.parametrize("estimator", ["anchor", "confident-joint", "fpml", "hoc"])
def test_estimators_by_name(estimator):
    trainer = built(f"method.estimator={estimator}", "method.estimation_epochs=1")
    trainer.epoch(0)
    trainer.epoch(1)
    assert 0 <= trainer.method._noise.noise_rate < 0.6


# What cannot be


@pytest.mark.parametrize("method", METHODS)
def test_a_loss_that_removes_noise_itself_is_refused(method):
    with pytest.raises(InputError, match="this loss is corrected already"):
        build(small_config(f"method={method}", "loss=forward"))


@pytest.mark.parametrize("method", ["two-stage-backward", "two-stage-reweighting"])
@pytest.mark.parametrize("loss", ["dmi", "peer"])
def test_a_loss_that_compares_rows_is_refused(method, loss):
    with pytest.raises(InputError, match="compares the rows of a batch"):
        build(small_config(f"method={method}", f"loss={loss}"))


@pytest.mark.parametrize(
    ("method", "option", "message"),
    [
        ("two-stage-forward", "estimation_epochs=0", "method.estimation_epochs must be a whole number of at least 1"),
        ("two-stage-forward", "estimator=ancor", "method.estimator: .*anchor.* Or: given, cross-fit"),
        ("two-stage-backward", "floor=1", "method.floor must be a number of at least 0 and below 1"),
        ("two-stage-reweighting", "largest_weight=0", "method.largest_weight must be a number above 0"),
    ],
)
def test_options_that_cannot_be(method, option, message):
    with pytest.raises(InputError, match=message):
        build(small_config(f"method={method}", f"method.{option}"))


def test_forward_refuses_a_loss_that_cannot_express_every_posterior():
    with pytest.raises(InputError, match="cannot express every posterior"):
        build(small_config("method=two-stage-forward", "loss=logit-clip"))


def test_the_recorded_rate_is_that_of_the_optimiser_in_use():
    trainer = built("method.estimation_epochs=3", "method.fresh=true", "optimiser.lr=0.1", "schedule=cosine")
    rates = [trainer.epoch(number)[0]["lr"] for number in range(6)]
    assert rates[0] > rates[1] > rates[2] < rates[3]
    assert rates[3] > rates[4] > rates[5]
