"""f-div: the objective against its formula, and the two phases with their learning rates."""

import math

import pytest
import torch
from small_runs import small_config

from postmax import losses
from postmax.errors import InputError
from postmax.methods.f_div import probability_of
from postmax.methods.parts.peers import with_peers
from postmax.train.build import build

# g and f*(g) in the form of the paper, with a g that rises.
PAIRS = {
    "tv": (lambda p: math.tanh(p) / 2, lambda p: math.tanh(p) / 2),
    "kl": (lambda p: p, lambda p: math.exp(p - 1)),
    "pearson": (lambda p: p, lambda p: p + p * p / 4),
    "rkl": (lambda p: -math.exp(-p), lambda p: p - 1),
    "neyman": (lambda p: 1 - math.exp(-p), lambda p: 2 - 2 * math.sqrt(math.exp(-p))),
}


def trainer_of(*overrides):
    return build(small_config("method=f-div", "epochs=6", *overrides)).trainer


def rates(trainer):
    return {name: one.optimiser.param_groups[0]["lr"] for name, one in trainer.resources.optimisers.items()}


@pytest.mark.parametrize("name", ["ce", "gan-pml"])
@pytest.mark.parametrize("divergence", PAIRS)
def test_the_objective_of_a_batch(divergence, name, monkeypatch):
    found = []

    def spy(run, labels):
        for one in with_peers(run, labels):
            found.append(one)
            yield one

    monkeypatch.setattr("postmax.methods.f_div.with_peers", spy)
    trainer = trainer_of(f"method.divergence={divergence}", "method.warmup_epochs=0", f"loss={name}")
    before = {key: value.clone() for key, value in trainer.method.answer.state_dict().items()}
    step = next(trainer.steps(0))
    trainer.method.answer.load_state_dict(before)
    loss, one, (g, conjugate) = losses.get(name), found[0], PAIRS[divergence]
    own, other = (loss.posterior(trainer.method.answer(x)).tolist() for x in (one.batch.inputs, one.inputs))
    rewards = [g(p[y]) for p, y in zip(own, one.batch.labels.tolist(), strict=True)]
    penalties = [conjugate(p[y]) for p, y in zip(other, one.labels.tolist(), strict=True)]
    expected = sum(penalties) / len(penalties) - sum(rewards) / len(rewards)
    assert step.loss.item() == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert step.values["divergence"] == pytest.approx(-expected, rel=1e-5, abs=1e-6)


def test_the_probability_of_a_label_is_that_of_the_loss():
    loss, logits = losses.get("gan-pml"), torch.tensor([[2.0, -1.0], [0.5, 0.0]])
    found = probability_of(loss.posterior(logits), torch.tensor([1, 0]))
    assert found.tolist() == [float(loss.posterior(logits)[0, 1]), float(loss.posterior(logits)[1, 0])]
    assert not torch.allclose(found, probability_of(logits.softmax(-1), torch.tensor([1, 0])))


def test_the_phases_and_their_learning_rates():
    trainer, loss = trainer_of("schedule=cosine", "loss=gce"), losses.get("gce", reduction="none")
    labels = trainer._truth.labels[0]
    found = []
    for epoch in range(6):
        steps = list(trainer.steps(epoch))
        for step in steps:
            plain = loss(step.logits, labels[step.rows]).mean()
            assert torch.isclose(step.loss, plain) == (epoch < 3)
            assert ("divergence" in step.values) == (epoch >= 3)
        found.append(rates(trainer)["first phase" if epoch < 3 else "second phase"])
    last = 23 / 24  # the last of 24 steps of a phase
    for epoch, rate in enumerate(found):
        done = (8 * (epoch % 3) + 7) / 24
        assert rate == pytest.approx((0.05 if epoch < 3 else 0.005) * (1 + math.cos(math.pi * done)) / 2)
    assert done == last


def test_the_loss_of_the_run_goes_through_its_own_course_in_the_warm_up():
    trainer = trainer_of("loss=negative-label-smoothing", "loss.rate=0.5")  # cross-entropy for half of its course
    labels, plain = trainer._truth.labels[0], losses.get("ce", reduction="none")
    same = [
        all(
            bool(torch.isclose(step.loss, plain(step.logits, labels[step.rows]).mean()))
            for step in trainer.steps(epoch)
        )
        for epoch in range(3)
    ]
    assert same == [True, True, False]


@pytest.mark.parametrize(("warmup", "first", "second"), [("0", 0, 3), ("3", 3, 0), ("9", 3, 0), ("null", 2, 1)])
def test_a_phase_may_have_no_epoch(warmup, first, second):
    trainer = build(small_config("method=f-div", "epochs=3", f"method.warmup_epochs={warmup}")).trainer
    found = ["divergence" in trainer.epoch(epoch)[0].get("method", {}) for epoch in range(3)]
    assert found == [False] * first + [True] * second


def test_the_second_phase_makes_the_divergence_larger():
    trainer = trainer_of("method.warmup_epochs=0", "method.second_rate=10", "epochs=20", "loss=ce")
    values = [trainer.epoch(epoch)[0]["method"]["divergence"] for epoch in range(20)]
    assert values[-1] > values[0] + 0.05


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("divergence=tvv", "unknown divergence of f-div 'tvv'. Did you mean 'tv'"),
        ("second_rate=0", r"method\.second_rate must be"),
        ("warmup_epochs=-1", r"method\.warmup_epochs must be"),
        ("warmup_epochs=0.5", r"method\.warmup_epochs must be"),
    ],
)
def test_options_that_cannot_be(option, message):
    with pytest.raises(InputError, match=message):
        trainer_of(f"method.{option}")
