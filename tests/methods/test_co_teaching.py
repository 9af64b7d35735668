"""Co-teaching against a loop by hand."""

import pytest
import torch
from small_runs import small_config
from torch import nn
from torch.nn import functional as F

from postmax.errors import InputError
from postmax.train.build import build


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


@pytest.mark.parametrize("method", ["co-teaching", "divide-mix"])
def test_a_loss_that_cannot_tell_rows_apart_is_refused(method):
    with pytest.raises(InputError, match="one number for a whole batch"):
        build(small_config(f"method={method}", "loss=dmi", "epochs=20"))


@pytest.mark.parametrize(
    "option", ["forget_rate=1", "forget_rate=-0.1", "ramp_epochs=-1", "ramp_epochs=2.5", "forget_rate=x"]
)
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]}"):
        build(small_config("method=co-teaching", f"method.{option}"))
