"""SOP against its published formulas, written as loops over rows and classes."""

import math

import pytest
import torch
from small_runs import small_config
from torch import nn

from postmax import losses
from postmax.errors import InputError
from postmax.methods import sop
from postmax.methods.parts.pull import pull
from postmax.train.build import build


def by_hand(network, batch, u, v):
    """The published objective of a batch, entry by entry."""
    logits = network(batch.inputs)
    total = 0.0
    for row, label in enumerate(batch.labels.tolist()):
        p = logits[row].softmax(-1)
        index = int(batch.rows[row])
        added = [u[index, 0] ** 2 if k == label else torch.tensor(0.0) for k in range(2)]
        taken = [v[index, k] ** 2 if k != label else torch.tensor(0.0) for k in range(2)]
        q = torch.stack([(p[k] + added[k] - taken[k].detach()).clamp_min(1e-12) for k in range(2)])
        q = q / q.sum()
        predicted = int(p.argmax())
        gap = sum((int(k == predicted) + added[k] - taken[k] - int(k == label)) ** 2 for k in range(2))
        total = total - q[label].log() + gap
    return total / len(batch.labels)


def test_one_step_is_the_published_one():
    options = ("method=sop", "method.lr_u=3", "method.lr_v=5", "loss=ce", "model.hidden=[]", "schedule=constant")
    trainer = build(small_config(*options, "optimiser.momentum=0", "optimiser.weight_decay=0.5")).trainer
    for name, tensor in trainer.save().part("state").items():  # away from 0, so that every term has a gradient
        generator = torch.Generator().manual_seed(len(name))
        with torch.no_grad():
            tensor.copy_(0.3 + 0.4 * torch.rand(tensor.shape, generator=generator))
    copy = nn.Linear(30, 2)
    state = trainer.resources.networks[0].state_dict()
    copy.load_state_dict({key.removeprefix("fc."): value for key, value in state.items()})
    before = {name: t.detach().clone().requires_grad_() for name, t in trainer.save().part("state").items()}
    batch = next(iter(trainer.batches.epoch(0)))
    value = by_hand(copy, batch, before["u"], before["v"])
    gradients = torch.autograd.grad(value, [before["u"], before["v"], *copy.parameters()])
    step = next(trainer.steps(0))
    assert float(step.loss.detach()) == pytest.approx(float(value.detach()), rel=1e-5)
    after = trainer.save().part("state")
    # The batch has 64 rows, and the rates are for 128.
    torch.testing.assert_close(after["u"], before["u"] - 3 * 64 / 128 * gradients[0])
    torch.testing.assert_close(after["v"], before["v"] - 5 * 64 / 128 * gradients[1])
    assert gradients[0].abs().max() > 0
    assert gradients[1].abs().max() > 0
    unseen = torch.ones(len(after["u"]), dtype=torch.bool)
    unseen[batch.rows] = False
    assert torch.equal(after["u"][unseen], before["u"][unseen])
    for ours, start, gradient in zip(
        trainer.resources.networks[0].parameters(), copy.parameters(), gradients[2:], strict=True
    ):
        torch.testing.assert_close(ours, start - 0.05 * (gradient + 0.5 * start))


def test_noise_variables_are_neither_decayed_nor_clipped_nor_scheduled():
    options = ("method=sop", "optimiser.weight_decay=0.1", "optimiser.clip_norm=1e-6", "optimiser.l1=0.1")
    found = build(small_config(*options, "optimiser.nesterov=true")).trainer.resources.optimisers
    assert set(found) == {"main", "u", "v"}
    for name in ("u", "v"):
        config = found[name].config
        assert (config.weight_decay, config.clip_norm, config.l1, config.momentum) == (0, None, 0, 0)
        assert found[name].schedule is None
    assert found["main"].config.clip_norm == 1e-6


def test_a_loss_that_cannot_express_every_posterior_is_refused_before_anything_is_trained():
    with pytest.raises(InputError, match="cannot express every posterior"):
        build(small_config("method=sop", "loss=logit-clip"))


@pytest.mark.parametrize("name", ["ce", "gce", "kl-pml", "sl-pml", "gan-pml", "js-pml", "sharpened-pml"])
def test_what_the_loss_gets(name):
    """Without noise the logits themselves, with the gradient of the loss; else those of the explained posterior."""
    loss = losses.get(name, reduction="none")
    generator = torch.Generator().manual_seed(0)
    logits = 6 * torch.randn(20, 4, generator=generator)
    logits[0] = torch.tensor([60.0, -60.0, 0.0, 1.0])
    logits.requires_grad_()
    labels, none = torch.arange(20) % 4, torch.zeros(20, 4)
    plain, found = loss(logits, labels).sum(), loss(sop.explained_logits(loss, logits, none, none), labels).sum()
    torch.testing.assert_close(found, plain)
    torch.testing.assert_close(torch.autograd.grad(found, logits), torch.autograd.grad(plain, logits))
    added = torch.zeros(20, 4).scatter(1, labels[:, None], torch.rand(20, 1, generator=generator))
    (gradient,) = torch.autograd.grad(loss(sop.explained_logits(loss, logits, added, none), labels).sum(), logits)
    assert gradient.isfinite().all()
    p = torch.rand(20, 4, generator=generator).softmax(-1)
    moved = sop.explained_logits(loss, loss.logits_of(p), added, none)
    torch.testing.assert_close(loss.posterior(moved), (p + added) / (1 + added.sum(-1, keepdim=True)))


def test_a_label_that_is_explained_does_not_move_the_network():
    for name in ("ce", "sl-pml", "gan-pml"):
        loss = losses.get(name, reduction="none")
        logits = loss.logits_of(torch.tensor([[0.9998, 0.0001, 0.0001]])).requires_grad_()
        label, added = torch.tensor([1]), torch.tensor([[0.0, 1.0, 0.0]])
        moved = sop.explained_logits(loss, logits, added, torch.tensor([[1.0, 0.0, 0.0]]))
        (gradient,) = torch.autograd.grad(loss(moved, label).sum(), logits)
        assert gradient.abs().max() < 1e-3


def test_the_further_terms_of_sop_plus_by_hand():
    trainer = build(small_config("method=sop-plus", "method.view=strong", "loss=gan-pml")).trainer
    loss = losses.get("gan-pml", reduction="none")
    weak, strong = torch.tensor([[1.0, -1.0], [0.3, 0.0]]), torch.tensor([[0.5, 0.5], [-1.0, 2.0]])
    added, taken = torch.tensor([[0.5, 0.0], [0.0, 0.0]]), torch.tensor([[0.0, 0.1], [0.2, 0.0]])
    found = trainer.method._regulariser(loss, (weak, strong), added, taken)
    p, s = loss.posterior(weak).tolist(), loss.posterior(strong).tolist()
    disagreement = sum(p[i][k] * math.log(p[i][k] / s[i][k]) for i in range(2) for k in range(2)) / 2
    q = [[max(p[i][k] + float(added[i, k] - taken[i, k]), 0) for k in range(2)] for i in range(2)]
    mean = [sum(q[i][k] / sum(q[i]) for i in range(2)) / 2 for k in range(2)]
    imbalance = -sum(math.log(m) for m in mean) / 2
    assert float(found) == pytest.approx(0.9 * disagreement + 0.1 * imbalance, rel=1e-5)


def test_the_further_terms_move_the_strong_view_alone():
    trainer = build(small_config("method=sop-plus", "method.view=strong", "method.balance_weight=0")).trainer
    weak, strong = (torch.randn(3, 2, requires_grad=True) for _ in range(2))
    none = torch.zeros(3, 2)
    trainer.method._regulariser(losses.get("ce"), (weak, strong), none, none).backward()
    assert weak.grad is None or weak.grad.abs().max() == 0
    assert strong.grad.abs().max() > 0


@pytest.mark.parametrize("option", ["consistency_weight=-1", "balance_weight=x"])
def test_options_of_sop_plus_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]} must be a number"):
        build(small_config("method=sop-plus", f"method.{option}"))


@pytest.mark.parametrize("option", ["lr_u=0", "lr_v=-1", "lr_u=x", "lr_v=true", "lr_u=null"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]} must be a number above 0"):
        build(small_config("method=sop", f"method.{option}"))


def test_noise_variables_learn_as_fast_with_a_loss_that_pulls_less():
    """V only follows the predicted class, and two networks with the same weights predict the same."""
    moved = []
    for loss in ("ce", "sl-pml"):
        trainer = build(small_config("method=sop", f"loss={loss}")).trainer
        with torch.no_grad():
            trainer.save().part("state")["v"].fill_(0.3)
        next(trainer.steps(0))
        moved.append(trainer.save().part("state")["v"].clone())
    assert (moved[0] - 0.3).abs().max() > 0.01
    torch.testing.assert_close(moved[0], moved[1])


def test_the_further_terms_are_as_strong_as_the_loss():
    options = ("method=sop-plus", "loss=sl-pml", "method.view=strong", "method.consistency_weight=0")
    trainer = build(small_config(*options, "method.balance_weight=0.7")).trainer
    loss, step = trainer.method.loss, next(trainer.steps(0))  # in the first step, nothing is explained yet
    logits, labels = step.logits.detach(), trainer._truth.labels[0][step.rows]
    mismatch = 2 * (logits.argmax(-1) != labels).float().mean()
    imbalance = -loss.posterior(logits).mean(0).log().mean()
    expected = loss(logits, labels).mean() + mismatch + pull(loss, 2) * 0.7 * imbalance
    torch.testing.assert_close(step.loss.detach(), expected)
