"""What an answer consists of, in plain values: taken apart and put together again."""

import json

import pytest
import torch
from torch import nn

from postmax.errors import InputError
from postmax.methods.parts.answers import LABEL_NOISE, STAGE, at_stage, build, composition_of, networks_of
from postmax.methods.parts.ensemble import MeanOutputs
from postmax.methods.parts.log_ratios import log_ratio_basis
from postmax.methods.parts.outputs import FirstOutputs, LogRatioLogits
from postmax.methods.parts.stages import Stages

ROWS = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))


def networks(*outputs):
    return [nn.Linear(3, count) for count in outputs]


def again(answer, outputs):
    """The answer after it was saved as JSON and weights."""
    composition, weights = at_stage(composition_of(answer, outputs) | {"labels": "loss"}, state(answer))
    built = build(json.loads(json.dumps(composition)), lambda count: nn.Linear(3, count))
    built.load_state_dict({name: tensor for name, tensor in weights.items() if "/" not in name})
    return built


def state(answer):
    stage = {STAGE: answer.stage} if isinstance(answer, Stages) else {}
    return {**answer.state_dict(), **stage, LABEL_NOISE: torch.eye(4)}


def answers():
    one, other, wide, ratios = networks(4, 4, 5, 6)
    outputs = {one: 4, other: 4, wide: 5, ratios: 6}
    stage = torch.tensor(0)
    found = {
        "network": one,
        "mean": MeanOutputs([one, other]),
        "first": FirstOutputs(wide, 4),
        "log-ratios": LogRatioLogits(ratios, log_ratio_basis(4)),
        "first stage": Stages([FirstOutputs(wide, 4), one], stage),
        "last stage": Stages([FirstOutputs(wide, 4), one], stage + 1),
    }
    return [pytest.param(answer, outputs, id=name) for name, answer in found.items()]


@pytest.mark.parametrize(("answer", "outputs"), answers())
def test_an_answer_that_was_saved_is_the_same(answer, outputs):
    built = again(answer, outputs)
    assert torch.equal(built(ROWS), answer(ROWS))
    assert all(isinstance(network, nn.Linear) for network in networks_of(built))


def test_other_networks_than_those_of_the_stage_are_left_out():
    (one, other), stage = networks(4, 4), torch.tensor(1)
    answer = Stages([one, other], stage)
    composition = {**composition_of(answer, {one: 4, other: 4}), "labels": "noise"}
    kept, tensors = at_stage(composition, state(answer))
    assert kept == {"kind": "network", "outputs": 4, "labels": "noise"}
    assert set(tensors) == {"weight", "bias", LABEL_NOISE}
    assert torch.equal(tensors["weight"], other.weight)


def test_a_stage_that_is_not_known_is_refused():
    """As in a run that an older version of postmax began."""
    answer = Stages(networks(4, 4), torch.tensor(1))
    composition = {"kind": "stages", "of": [{"kind": "network", "outputs": 4}] * 2, "labels": "loss"}
    with pytest.raises(InputError, match="not known which of the networks answered"):
        at_stage(composition, answer.state_dict())


def test_unknown_parts_are_refused():
    (one,) = networks(4)
    with pytest.raises(InputError, match="a part of the class Sequential"):
        composition_of(nn.Sequential(one), {one: 4})
    with pytest.raises(KeyError):
        build({"kind": "median", "of": []}, nn.Identity)
