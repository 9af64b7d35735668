"""Peer loss: pairs drawn from all rows, a bounded part that is subtracted, and how α changes."""

import math

import pytest
import torch
from small_runs import small_config

from postmax import losses
from postmax.errors import InputError
from postmax.methods import describe
from postmax.methods.parts.peers import both_outputs, with_peers
from postmax.methods.parts.ramps import checked_points, piecewise
from postmax.methods.peer import peer_losses
from postmax.train.build import build

FLAT = "method.alpha=[[0, 0.5]]"


def trainer_of(*overrides):
    return build(small_config("method=peer", "epochs=4", *overrides)).trainer


def plain(name):
    return losses.get(name, reduction="none")


class Pass:
    """What `with_peers` needs of an epoch, and a record of what it got."""

    def __init__(self, trainer, number=0):
        self._batches, self._number = trainer.batches, number
        self.streams = {}

    def batches(self, stream=""):
        for batch in self._batches.epoch(self._number, stream=stream):
            self.streams.setdefault(stream, []).append(batch.rows)
            yield batch

    def generator(self, key):
        return torch.Generator().manual_seed(len(key) + 1000 * self._number)


# The pairs


def test_rows_and_labels_of_the_pairs_come_from_the_whole_set_in_orders_of_their_own():
    trainer = trainer_of()
    given = torch.arange(456)  # a label for each row, so that the drawn rows can be told
    run = Pass(trainer)
    found = list(with_peers(run, given))
    own, other = (torch.cat(run.streams[stream]) for stream in ("", "peers"))
    drawn = torch.cat([one.labels for one in found])
    for order in (own, other, drawn):
        assert torch.equal(order.sort().values, given)
    for first, second in ((own, other), (own, drawn), (other, drawn)):
        assert (first == second).float().mean() < 0.02
    # Pairs do not stay within a batch: most rows and labels are from other batches.
    first = found[0]
    assert torch.isin(drawn[: len(first.labels)], first.batch.rows).float().mean() < 0.4
    rows = trainer.batches.dataset.inputs
    torch.testing.assert_close(first.inputs, rows[other[: len(first.inputs)]].to(first.inputs))
    again = torch.cat([one.labels for one in with_peers(Pass(trainer, 1), given)])
    assert (again == drawn).float().mean() < 0.02


def test_the_last_short_batch_has_as_many_pairs():
    found = list(with_peers(Pass(trainer_of("batch_size=100")), torch.zeros(456, dtype=torch.int64)))
    assert [len(one.batch.rows) for one in found] == [100, 100, 100, 100, 56]
    assert all(len(one.inputs) == len(one.labels) == len(one.batch.rows) for one in found)


def test_both_parts_go_through_the_network_together():
    network = torch.nn.BatchNorm1d(30, affine=False)
    found = next(with_peers(Pass(trainer_of()), torch.zeros(456, dtype=torch.int64)))
    first, second = both_outputs(network, found)
    whole = torch.cat([found.batch.inputs, found.inputs])
    expected = (whole - whole.mean(0)) / (whole.var(0, unbiased=False) + 1e-5).sqrt()
    torch.testing.assert_close(torch.cat([first, second]), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(first, expected[: len(first)], rtol=1e-4, atol=1e-4)


# The loss of the pairs


def test_for_cross_entropy_the_margin_is_the_published_constant():
    logits = 3 * torch.randn(6, 10, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 3, 9, 9, 5, 1])
    found = peer_losses(plain("ce"), logits, labels, 1e-4)
    for row, label in enumerate(labels.tolist()):
        total = sum(math.exp(value) for value in logits[row].tolist())
        p = math.exp(float(logits[row, label])) / total
        # −log(p + 1e-5), up to the share 1 − m and a number that does not depend on the network.
        assert float(found[row]) == pytest.approx(-math.log((1 - 1e-4) * p + 1e-5), rel=1e-5)


@pytest.mark.parametrize("name", ["ce", "gce", "sl-pml", "gan-pml", "kl-pml", "sharpened-pml"])
def test_the_loss_of_a_pair_is_bounded_and_has_a_finite_gradient(name):
    loss = plain(name)
    logits = torch.tensor([[500.0, -500.0, 0.0], [0.0, 0.0, 0.0], [-500.0, -500.0, 500.0]]).requires_grad_()
    for label in range(3):
        found = peer_losses(loss, logits, torch.full((3,), label), 1e-4)
        (gradient,) = torch.autograd.grad(found.sum(), logits)
        assert found.isfinite().all()
        assert gradient.isfinite().all()
    lowest = torch.tensor([[1 - 2e-4 / 3, 1e-4 / 3, 1e-4 / 3]], dtype=torch.float64)
    limit = float(loss(loss.logits_of(lowest), torch.tensor([1])))
    far = peer_losses(loss, torch.tensor([[2000.0, -2000.0, -2000.0]]), torch.tensor([1]), 1e-4)
    assert float(far) <= limit + 1e-3


# How α changes


def test_alpha_is_linear_between_points_and_jumps():
    points = [(0.25, 0.0), (0.5, 1.0), (0.5, 3.0), (0.75, 2.0)]
    found = [piecewise(points, time) for time in (0, 0.25, 0.375, 0.5, 0.625, 0.75, 1)]
    assert found == [0.0, 0.0, 0.5, 3.0, 2.5, 2.0, 2.0]


@pytest.mark.parametrize(
    ("preset", "epochs", "expected"),
    [
        # Published in epochs of 300 or 250.
        ("cifar10-uniform", 300, {0: 0, 20: 0, 30: 0.05, 40: 1, 65: 1.5, 90: 2, 115: 2.25, 140: 2.5, 240: 3.3}),
        ("cifar10-sparse", 300, {20: 0, 30: 0.5, 40: 1, 65: 1.5, 90: 2, 115: 3.5, 140: 5, 190: 7.5, 240: 10, 290: 15}),
        ("cifar100-uniform", 250, {0: 0, 99: 0, 100: 0.95, 249: 0.95}),
    ],
)
def test_published_schedules(preset, epochs, expected):
    points = checked_points(describe("peer").presets[preset].options["alpha"], "alpha")
    for epoch, alpha in expected.items():
        assert piecewise(points, epoch / epochs) == pytest.approx(alpha), epoch


def test_alpha_follows_the_epochs_and_divides_the_learning_rate():
    trainer = trainer_of("method.alpha=[[0.25, 0], [0.75, 2]]", "loss=gce", "schedule=constant")
    alphas, rates = [], []
    for epoch in range(4):
        steps = list(trainer.steps(epoch))
        alphas += [step.values["alpha"] for step in steps]
        rates.append(trainer.resources.optimisers["main"].optimiser.param_groups[0]["lr"])
    assert alphas == [0] * 16 + [1] * 8 + [2] * 8
    assert rates == pytest.approx([0.05, 0.05, 0.05 / 2, 0.05 / 3])


@pytest.mark.parametrize("name", ["ce", "sl-pml"])
def test_the_objective_of_a_batch(name, monkeypatch):
    found = []

    def spy(run, labels):
        for one in with_peers(run, labels):
            found.append(one)
            yield one

    monkeypatch.setattr("postmax.methods.peer.with_peers", spy)
    trainer, loss = trainer_of(FLAT, f"loss={name}"), plain(name)
    before = {key: value.clone() for key, value in trainer.method.answer.state_dict().items()}
    step = next(trainer.steps(0))
    trainer.method.answer.load_state_dict(before)
    one = found[0]
    logits, others = trainer.method.answer(one.batch.inputs), trainer.method.answer(one.inputs)
    torch.testing.assert_close(step.logits, logits)
    assert torch.equal(step.rows, one.batch.rows)
    expected = loss(logits, one.batch.labels).mean() - 0.5 * peer_losses(loss, others, one.labels, 1e-4).mean()
    torch.testing.assert_close(step.loss, expected)


def test_without_alpha_it_is_the_plain_training():
    weights = []
    for method in ("peer", "standard"):
        overrides = ("method.alpha=[[0, 0]]",) if method == "peer" else ()
        trainer = build(small_config(f"method={method}", *overrides)).trainer
        for epoch in range(2):
            trainer.epoch(epoch)
        weights.append(trainer.weights(0))
    for name, first in weights[0].items():
        assert torch.equal(first, weights[1][name])


def test_a_large_alpha_does_not_diverge():
    trainer = trainer_of("method.alpha=[[0, 10]]", "loss=ce", "optimiser.lr=0.5", "epochs=30")
    for epoch in range(30):
        trainer.epoch(epoch)
    # The part that is subtracted is at most 10 times −log of half the margin.
    last = [step.loss.item() for step in trainer.steps(29)]
    assert min(last) > 10 * math.log(1e-4 / 2)


# What it refuses


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("method.alpha=1",), r"method\.alpha is a list of points"),
        (("method.alpha=[]",), r"method\.alpha is a list of points"),
        (("method.alpha=[[0.5, 1], [0.2, 2]]",), r"method\.alpha is a list of points"),
        (("method.alpha=[[0, -1]]",), r"method\.alpha is a list of points"),
        (("method.alpha=[[20, 1]]",), r"method\.alpha is a list of points"),
        (("method.margin=0",), r"method\.margin must be a number above 0 and below 1"),
        (("loss=peer",), "compares the rows of a batch"),
        (("loss=dmi",), "compares the rows of a batch"),
        (("loss=forward", "transition=symmetric:0.2"), "is corrected already"),
        (("loss=logit-clip",), "cannot express every posterior"),
    ],
)
def test_what_it_refuses(overrides, message):
    with pytest.raises(InputError, match=message):
        trainer_of(*overrides)
