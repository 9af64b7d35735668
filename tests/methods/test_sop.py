"""SOP against its published formulas, written as loops over rows and classes."""

import pytest
import torch
from small_runs import small_config
from torch import nn

from postmax.errors import InputError
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
        q = torch.stack([(p[k] + added[k] - taken[k].detach()).clamp_min(1e-4) for k in range(2)])
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
    torch.testing.assert_close(after["u"], before["u"] - 3 * gradients[0])
    torch.testing.assert_close(after["v"], before["v"] - 5 * gradients[1])
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


@pytest.mark.parametrize("option", ["lr_u=0", "lr_v=-1", "lr_u=x", "lr_v=true", "lr_u=null"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]} must be a number above 0"):
        build(small_config("method=sop", f"method.{option}"))
