"""Co-teaching+ against a loop by hand."""

import pytest
import torch
from small_runs import small_config
from torch import nn
from torch.nn import functional as F

from postmax.errors import InputError
from postmax.methods.co_teaching_plus import easy_where_they_disagree
from postmax.train.build import build

OPTIONS = ("method=co-teaching-plus", "method.forget_rate=0.5", "method.ramp_epochs=0", "loss=ce")


def test_only_disputed_rows_with_small_losses_of_the_other_network_are_chosen():
    first_class, second_class = torch.tensor([0, 1, 1, 0, 2]), torch.tensor([1, 1, 0, 2, 0])
    first, second = torch.tensor([4.0, 0.0, 1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 2.0, 3.0, 4.0])
    # Rows 0, 2, 3 and 4 are disputed. The second network finds 0 and 2 easiest, the first one 2 and 3.
    chosen = easy_where_they_disagree(first_class, second_class, first, second, 0.5)
    assert [rows.tolist() for rows in chosen] == [[0, 2], [2, 3]]


def test_networks_that_agree_choose_as_in_co_teaching():
    same = torch.tensor([0, 1, 1, 0])
    chosen = easy_where_they_disagree(same, same, torch.tensor([3.0, 2, 1, 0]), torch.tensor([0.0, 1, 2, 3]), 0.5)
    assert [rows.tolist() for rows in chosen] == [[0, 1], [3, 2]]


def test_one_disputed_row_is_used_however_many_are_left_out():
    chosen = easy_where_they_disagree(
        torch.tensor([0, 1]), torch.tensor([0, 0]), torch.tensor([0.0, 9.0]), torch.tensor([0.0, 9.0]), 0.1
    )
    assert [rows.tolist() for rows in chosen] == [[1], [1]]


def test_a_step_after_the_warm_up():
    settings = ("optimiser.momentum=0", "schedule=constant", "model.hidden=[]", "epochs=4", "batch_size=128")
    trainer = build(small_config(*OPTIONS, "method.warmup_epochs=0", *settings)).trainer
    copies = [nn.Linear(30, 2) for _ in range(2)]
    for copy, network in zip(copies, trainer.resources.networks, strict=True):
        copy.load_state_dict({key.removeprefix("fc."): value for key, value in network.state_dict().items()})
    batch = next(iter(trainer.batches.epoch(0)))
    next(trainer.steps(0))
    outputs = [copy(batch.inputs) for copy in copies]
    disputed = [row for row in range(128) if outputs[0][row].argmax() != outputs[1][row].argmax()]
    assert 4 < len(disputed) < 124
    losses = [F.cross_entropy(found, batch.labels, reduction="none") for found in outputs]
    easy = [sorted(disputed, key=lambda row: found[row].item())[: len(disputed) // 2] for found in losses]
    for copy, found, rows, network in zip(copies, losses, reversed(easy), trainer.resources.networks, strict=True):
        gradients = torch.autograd.grad(found[rows].mean(), [copy.weight, copy.bias])
        for before, gradient, ours in zip(copy.parameters(), gradients, network.parameters(), strict=True):
            torch.testing.assert_close(ours, before - 0.05 * gradient)


@pytest.mark.parametrize(("options", "warmup"), [((), 5), (("method.warmup_epochs=2",), 2)])
def test_disagreement_counts_after_the_warm_up(monkeypatch, options, warmup):
    monkeypatch.setattr(
        "postmax.methods.co_teaching_plus.easy_where_they_disagree", lambda *_: (torch.arange(1), torch.arange(1))
    )
    trainer = build(small_config(*OPTIONS, *options, "epochs=20")).trainer
    for epoch in range(7):
        assert next(trainer.steps(epoch)).values["kept"] == (0.5 if epoch < warmup else 1 / 64)


@pytest.mark.parametrize("option", ["warmup_epochs=-1", "warmup_epochs=1.5", "forget_rate=1"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]}"):
        build(small_config("method=co-teaching-plus", f"method.{option}"))
