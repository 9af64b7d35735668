"""The contrastive loss against a loop over pairs, and networks without features."""

import math

import pytest
import torch
from small_runs import small_config
from torch import nn

from postmax import models
from postmax.errors import InputError
from postmax.methods.parts.contrast import directions, info_nce
from postmax.train.build import build


def by_hand(first, second, temperature):
    """The published loss, one anchor and one comparison at a time."""
    both = [*first.tolist(), *second.tolist()]
    rows = len(first)

    def similarity(a, b):
        product = sum(x * y for x, y in zip(a, b, strict=True))
        return product / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b)) / temperature

    total = 0.0
    for place, anchor in enumerate(both):
        positive = similarity(anchor, both[(place + rows) % (2 * rows)])
        others = [similarity(anchor, other) for number, other in enumerate(both) if number != place]
        total += math.log(sum(math.exp(value) for value in others)) - positive
    return total / len(both)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_the_contrastive_loss_by_hand(rows):
    generator = torch.Generator().manual_seed(rows)
    first, second = torch.randn(2, rows, 3, generator=generator)
    assert info_nce(first, second, 0.5).item() == pytest.approx(by_hand(first, second, 0.5), abs=1e-6)
    assert info_nce(first, second, 2.0).item() == pytest.approx(by_hand(first, second, 2.0), abs=1e-6)


@pytest.mark.parametrize("start", [torch.zeros(4, 3), torch.ones(4, 3), torch.full((4, 3), 1e20), 1e-20 * torch.eye(4)])
def test_projections_that_say_nothing_have_finite_gradients(start):
    projections = start.clone().requires_grad_()
    value = info_nce(projections, projections, 0.01)
    value.backward()
    assert value.isfinite()
    assert projections.grad.isfinite().all()


def test_half_precision_becomes_single_precision():
    assert directions(torch.ones(2, 3, dtype=torch.bfloat16)).dtype == torch.float32


@pytest.mark.parametrize("method", ["contrastive-pretraining", "ctrr", "representation-regularisation"])
def test_a_network_without_features_is_refused(monkeypatch, method):
    monkeypatch.setattr(models, "get", lambda _, num_classes, input_shape, **__: nn.Linear(*input_shape, num_classes))
    with pytest.raises(InputError, match=f"the method {method} needs the features of a network, and Linear has none"):
        build(small_config(f"method={method}"))
