"""Co-teaching against a loop by hand."""

import pytest
import torch
from small_runs import estimate_of, small_config
from torch import nn
from torch.nn import functional as F

from postmax.errors import InputError
from postmax.train.build import build
from postmax.transition import Transition


def test_each_network_learns_from_the_rows_the_other_finds_easy():
    options = ("method=co-teaching", "method.forget_rate=0.5", "method.ramp_epochs=2", "loss=ce", "epochs=3")
    trainer = build(small_config(*options, "optimiser.momentum=0", "schedule=constant", "model.hidden=[]")).trainer
    list(trainer.steps(0))  # in the first epoch all rows are kept
    copies = [nn.Linear(30, 2) for _ in range(2)]
    for copy, network in zip(copies, trainer.resources.networks, strict=True):
        copy.load_state_dict({key.removeprefix("fc."): value for key, value in network.state_dict().items()})
    batch = next(iter(trainer.batches.epoch(1)))
    step = next(trainer.steps(1))
    losses = [F.cross_entropy(copy(batch.inputs), batch.labels, reduction="none") for copy in copies]
    kept = [sorted(range(len(batch.labels)), key=lambda row: values[row].item())[:32] for values in losses]
    assert len(batch.labels) == 64
    for copy, values, rows, network in zip(copies, losses, reversed(kept), trainer.resources.networks, strict=True):
        gradients = torch.autograd.grad(values[rows].mean(), [copy.weight, copy.bias])
        with torch.no_grad():
            for parameter, gradient, ours in zip(copy.parameters(), gradients, network.parameters(), strict=True):
                torch.testing.assert_close(ours, parameter - 0.05 * gradient)
    expected = sum(values[rows].mean().item() for values, rows in zip(losses, reversed(kept), strict=True)) / 2
    assert float(step.loss) == pytest.approx(expected)


@pytest.mark.parametrize(("epoch", "kept"), [(0, 64), (1, 57), (2, 51), (9, 51)])
def test_the_share_that_is_left_out_rises(epoch, kept, monkeypatch):
    seen = []

    def spy(losses, share):
        seen.append(max(1, int(share * len(losses))))
        return torch.arange(seen[-1])

    monkeypatch.setattr("postmax.methods.co_teaching.smallest", spy)
    options = ("method=co-teaching", "method.forget_rate=0.2", "method.ramp_epochs=3", "epochs=10")
    next(build(small_config(*options)).trainer.steps(epoch))
    assert seen == [kept, kept]


def test_without_a_ramp_rows_are_left_out_from_the_start():
    step = next(
        build(small_config("method=co-teaching", "method.forget_rate=0.25", "method.ramp_epochs=0")).trainer.steps(0)
    )
    assert step.values == {"kept": 0.75}


def test_the_share_of_wrong_labels_is_estimated_unless_it_is_given():
    def estimate(train):
        return estimate_of(Transition.symmetric(2, 0.25), train.classes, rate=0.25)

    steps = build(small_config("method=co-teaching", "method.ramp_epochs=0"), estimate=estimate).trainer.steps(0)
    assert next(steps).values == {"kept": 0.75}


def test_what_to_do_if_nothing_can_be_estimated():
    def estimate(train):
        raise InputError(f"{len(train)} rows are too few.")

    with pytest.raises(InputError, match=r"rows are too few. .* such as method.forget_rate=0.2"):
        build(small_config("method=co-teaching"), estimate=estimate)


@pytest.mark.parametrize(("epochs", "ramp"), [(300, 15), (100, 10), (30, 7), (8, 2), (3, 2), (1, 0)])
def test_by_default_all_rows_are_used_in_the_first_epoch_and_fewest_after_ten(epochs, ramp):
    """After a twentieth of a long training, and a quarter of a short one."""
    trainer = build(small_config("method=co-teaching", "method.forget_rate=0.5", f"epochs={epochs}")).trainer
    assert next(trainer.steps(0)).values["kept"] == (1 if ramp else 0.5)
    if epochs > 1:
        assert next(trainer.steps(ramp - 2)).values["kept"] > 0.5
        assert next(trainer.steps(ramp - 1)).values["kept"] == 0.5
        assert next(trainer.steps(epochs - 1)).values["kept"] == 0.5


@pytest.mark.parametrize(
    ("options", "changed_from"),
    [((), None), (("late_beta=0.1",), 4), (("late_beta=0.1", "late_epochs=3"), 7), (("preset=cifar10",), 4)],
)
def test_adam_forgets_faster_in_the_last_part(options, changed_from):
    given = ("method=co-teaching", "method.forget_rate=0.2", *(f"method.{option}" for option in options))
    trainer = build(small_config(*given, "optimiser.name=adam", "epochs=10")).trainer
    for epoch in range(10):
        next(trainer.steps(epoch))
        late = changed_from is not None and epoch >= changed_from
        for found in trainer.resources.optimisers.values():
            assert found.optimiser.param_groups[0]["betas"] == (0.1 if late else 0.9, 0.999)


def test_other_optimisers_have_no_beta_to_change():
    options = ("method=co-teaching", "method.forget_rate=0.2", "method.preset=cifar10", "optimiser.name=sgd")
    next(build(small_config(*options)).trainer.steps(3))


@pytest.mark.parametrize("method", ["co-teaching", "co-teaching-plus", "jocor", "divide-mix"])
def test_a_loss_that_cannot_tell_rows_apart_is_refused(method):
    with pytest.raises(InputError, match="one number for a whole batch"):
        build(small_config(f"method={method}", "loss=dmi", "epochs=20"))


@pytest.mark.parametrize(
    "option",
    [
        *("forget_rate=1", "forget_rate=-0.1", "forget_rate=x", "ramp_epochs=-1", "ramp_epochs=2.5"),
        *("late_beta=1", "late_beta=x", "late_epochs=-1", "late_epochs=0.5"),
    ],
)
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]}"):
        build(small_config("method=co-teaching", f"method.{option}"))
