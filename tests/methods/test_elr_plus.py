"""ELR+ against its published formulas: whose beliefs are remembered, what is mixed, and how slow the teachers are."""

import math

import pytest
import torch
from small_runs import small_config

from postmax.errors import InputError
from postmax.methods import elr_plus
from postmax.methods.elr_plus import weighed
from postmax.train.build import build

SHORT = ("method=elr-plus", "loss=ce", "model.hidden=[]", "schedule=constant", "optimiser.momentum=0")
SLOW = ("method.teacher_epochs=2", "method.weight_epochs=0")


def outputs(weights, rows):
    return rows @ weights["fc.weight"].T + weights["fc.bias"]


def copies(trainer):
    return [{k: v.clone() for k, v in network.state_dict().items()} for network in trainer.resources.networks]


def test_one_step_by_hand(monkeypatch):
    mixes, plain = [], elr_plus.mixup
    monkeypatch.setattr(
        elr_plus, "mixup", lambda *given, **options: mixes.append(plain(*given, **options)) or mixes[-1]
    )
    trainer = build(small_config(*SHORT, "method.memory=0.6", "method.weight=2", *SLOW)).trainer
    before = copies(trainer)
    batch = next(iter(trainer.batches.epoch(0, stream="network 0")))
    step = next(trainer.steps(0))
    share, partner, x = float(mixes[0].weight[0]), mixes[0].partner.tolist(), batch.inputs
    assert share >= 0.5
    targets = 0.4 * outputs(before[1], x).softmax(-1)
    expected = 0.0
    for i, j in enumerate(partner):
        p = outputs(before[0], share * x[i] + (1 - share) * x[j]).softmax(-1)
        t = share * targets[i] + (1 - share) * targets[j]
        label = share * torch.eye(2)[batch.labels[i]] + (1 - share) * torch.eye(2)[batch.labels[j]]
        expected += (-(label * p.log()).sum() + 2 * (1 - (t * p).sum()).log()) / len(x)
    assert float(step.loss.detach()) == pytest.approx(float(expected), rel=1e-4)
    torch.testing.assert_close(trainer.save().part("state")["targets of network 0"][batch.rows], targets)
    after = copies(trainer)
    decay = 0.997 * math.exp(-5)
    for name, mine in after[2].items():
        torch.testing.assert_close(mine, decay * before[0][name] + (1 - decay) * after[0][name])
    for place in (1, 3):  # the other network and its teacher have not moved yet
        assert all(torch.equal(after[place][name], before[place][name]) for name in before[place])


def test_teachers_start_as_copies():
    first, second, teacher, other = copies(build(small_config(*SHORT)).trainer)
    assert all(torch.equal(first[name], teacher[name]) and torch.equal(second[name], other[name]) for name in first)
    assert not torch.equal(first["fc.weight"], second["fc.weight"])


def test_labels_that_the_targets_weigh():
    found = weighed(torch.tensor([[0.7, 0.3, 0.0], [1.0, 0.0, 0.0]]), torch.tensor([[0.1, 0.4, 0.2], [0.01, 0.5, 0.4]]))
    torch.testing.assert_close(found, torch.tensor([[0.07 / 0.19, 0.12 / 0.19, 0], [1.0, 0, 0]]))


def test_weighed_labels_are_learnt():
    trainer = build(small_config(*SHORT, "method.weigh_labels=true", "method.weight_epochs=2")).trainer
    assert all(torch.isfinite(step.loss) for epoch in range(3) for step in trainer.steps(epoch))


def test_a_batch_of_one_row():
    trainer = build(small_config(*SHORT, "batch_size=1", "model.hidden=[3]")).trainer
    for _, step in zip(range(5), trainer.steps(0), strict=False):
        assert torch.isfinite(step.loss)


@pytest.mark.parametrize("option", ["memory=1", "weight=-1", "alpha=0", "teacher_decay=1", "teacher_epochs=-1"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]} must be a"):
        build(small_config("method=elr-plus", f"method.{option}"))
