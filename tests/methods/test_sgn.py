"""SGN against torch's normal distribution and plain loops."""

import math

import pytest
import torch
from small_runs import feature_archive, own_config, small_config
from torch.distributions import MultivariateNormal

from postmax.errors import InputError
from postmax.methods.parts.log_ratios import log_ratio_basis
from postmax.methods.sgn import negative_log_density, smoothed_log_ratios
from postmax.train.build import build


def trainer_of(*overrides):
    return build(small_config("method=sgn", "loss=ce", "epochs=8", *overrides)).trainer


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_density_is_that_of_torch(classes):
    generator = torch.Generator().manual_seed(0)
    target, mean, spread = (torch.randn(6, classes - 1, generator=generator).double() for _ in range(3))
    found = negative_log_density(target, mean, 2 * spread)
    for row in range(6):
        scale = torch.eye(classes - 1).double() + torch.outer(2 * spread[row], 2 * spread[row])
        normal = MultivariateNormal(mean[row], covariance_matrix=scale @ scale.T)
        torch.testing.assert_close(found[row], -normal.log_prob(target[row]))


def test_the_density_has_a_finite_gradient_where_the_spread_is_zero():
    spread = torch.zeros(1, 3, requires_grad=True)
    negative_log_density(torch.ones(1, 3), torch.zeros(1, 3), spread).sum().backward()
    assert torch.equal(spread.grad, torch.zeros(1, 3))


@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
def test_the_basis_is_orthonormal_and_sums_to_zero(classes):
    basis = log_ratio_basis(classes).double()
    torch.testing.assert_close(basis @ basis.T, torch.eye(classes - 1).double(), rtol=0, atol=1e-5)
    torch.testing.assert_close(basis.sum(1), torch.zeros(classes - 1).double(), rtol=0, atol=1e-4)


def test_labels_come_back_from_their_log_ratios():
    basis, labels = log_ratio_basis(4), torch.tensor([0, 3, 1])
    found = (smoothed_log_ratios(labels, basis, 0.1) @ basis).softmax(-1)
    for row, label in enumerate(labels.tolist()):
        expected = [0.925 if k == label else 0.025 for k in range(4)]
        assert found[row].tolist() == pytest.approx(expected, rel=1e-5)


def test_log_ratios_by_hand():
    """Centred logarithms, times the Helmert matrix."""
    basis = log_ratio_basis(3)
    p = [0.98 + 0.02 / 3, 0.02 / 3, 0.02 / 3]
    logs = [math.log(value) for value in p]
    expected = [(logs[0] - logs[1]) / math.sqrt(2), (logs[0] + logs[1] - 2 * logs[2]) / math.sqrt(6)]
    assert smoothed_log_ratios(torch.tensor([0]), basis, 0.02)[0].tolist() == pytest.approx(expected, rel=1e-5)


def test_a_step_is_the_published_one():
    trainer = trainer_of("method.trust=0.8", "method.decay=0.5", "optimiser.lr=0.01")
    network, average = trainer.resources.networks
    list(trainer.steps(0))  # the average is now another network
    before = {name: tensor.clone() for name, tensor in average.state_dict().items()}
    batches = list(trainer.batches.epoch(1))
    steps = trainer.steps(1)
    for index in (0, 1):
        batch = batches[index]
        outputs, averaged = network(batch.inputs).detach(), average(batch.inputs).detach()
        share = 1 - 0.8 ** (1 + index / len(batches))
        total = 0.0
        for row, label in enumerate(batch.labels.tolist()):
            target = (1 if label == 0 else -1) * math.log(0.9995 / 0.0005) / math.sqrt(2)
            mean = outputs[row, 0] + share * (target - averaged[row, 0])
            scale = 1 + float(outputs[row, 1]) ** 2
            total -= torch.distributions.Normal(mean, scale).log_prob(torch.tensor(target)).item()
        step = next(steps)
        assert step.loss.item() == pytest.approx(total / len(batch.labels), rel=1e-4)
        assert step.values["shift"] == pytest.approx(share)
        torch.testing.assert_close(step.logits, outputs[:, :1] @ torch.tensor([[1.0, -1.0]]) / math.sqrt(2))
        for name, tensor in average.state_dict().items():
            before[name] = (before[name] + network.state_dict()[name]) / 2
            torch.testing.assert_close(tensor, before[name])


def test_the_trust_in_labels_ends_at_the_same_value_in_every_training():
    for epochs in (8, 600):
        method = build(small_config("method=sgn", "loss=ce", f"epochs={epochs}")).trainer.method
        assert method._trust**epochs == pytest.approx(0.995**600)


@pytest.mark.parametrize("answer", ["network", "average"])
def test_the_answer_has_a_logit_for_each_class(tmp_path, answer):
    path = feature_archive(tmp_path / "rows.npz", classes=3)
    trainer = build(own_config(path, "method=sgn", "loss=ce", f"method.answer={answer}")).trainer
    trainer.epoch(0)
    network = trainer.resources.networks[0 if answer == "network" else 1]
    inputs = torch.randn(4, 5)
    found, means = trainer.method.answer(inputs), network(inputs)[:, :2]
    assert found.shape == (4, 3)
    assert network(inputs).shape == (4, 4)
    torch.testing.assert_close(found @ log_ratio_basis(3).T, means)
    for posterior in (trainer.method.readings(found)["model"], trainer.method.label_posterior(found)):
        torch.testing.assert_close(posterior, found.softmax(-1))


@pytest.mark.parametrize("loss", ["fpml", "gce", "sl-pml", "mae"])
def test_other_losses_are_refused(loss):
    with pytest.raises(InputError, match=r"the method sgn has a loss of its own.*set loss=ce"):
        trainer_of(f"loss={loss}")


@pytest.mark.parametrize("option", ["smoothing=0", "trust=1", "decay=1", "answer=both"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=rf"method\.{option.partition('=')[0]} must be"):
        trainer_of(f"method.{option}")
