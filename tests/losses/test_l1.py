import pytest
import torch
from torch import nn

import postmax as pm
from postmax.errors import InputError


def test_l1_penalty_is_the_sum_of_absolute_values():
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 2, bias=False))
    penalty = pm.losses.l1_penalty(model.parameters())
    torch.testing.assert_close(penalty, sum(p.abs().sum() for p in model.parameters()))
    penalty.backward()
    for p in model.parameters():
        assert torch.equal(p.grad, p.sign())


def test_l1_penalty_of_many_half_precision_parameters_does_not_overflow():
    assert pm.losses.l1_penalty([torch.full((100_000,), -2.0, dtype=torch.float16)]) == 200_000


def test_l1_penalty_of_nothing_is_refused():
    used_up = iter(())
    with pytest.raises(InputError, match="no parameters"):
        pm.losses.l1_penalty(used_up)
