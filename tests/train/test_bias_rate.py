"""Biases that move at a rate of their own: by hand, with every optimiser, in every loop."""

import json

import pytest
import torch
from small_runs import feature_archive, outcome, own_config, small_config, stop_after
from torch import nn
from torch.optim import Adam, AdamW

from postmax import methods
from postmax.errors import InputError
from postmax.methods import catalogue
from postmax.registry import Registry
from postmax.runs import execute
from postmax.train.build import build
from postmax.train.config import OptimiserConfig
from postmax.train.optimisers import make_optimiser, set_rate, weights_rate


def parameters(*shapes):
    generator = torch.Generator().manual_seed(0)
    made = [nn.Parameter(torch.randn(shape, generator=generator, dtype=torch.float64)) for shape in shapes]
    for parameter in made:
        parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return made


@pytest.mark.parametrize("fused", [True, False])
def test_sgd_by_hand(fused):
    weight, bias = nn.Parameter(torch.tensor([[2.0]])), nn.Parameter(torch.tensor([3.0]))
    config = OptimiserConfig(lr=0.1, momentum=0.5, weight_decay=0.2, bias_rate=4.0)
    optimiser = make_optimiser(config, [bias, weight], fused=fused)
    set_rate(optimiser, 0.1)
    for _ in range(2):
        weight.grad, bias.grad = torch.tensor([[1.0]]), torch.tensor([1.0])
        optimiser.step()
    # The weight: 2 - 0.1·(1 + 0.2·2) = 1.86, then 1.86 - 0.1·(0.5·1.4 + 1 + 0.2·1.86) = 1.6528.
    # The bias, with a rate of 0.4 and a decay of 0.05: 3 - 0.4·1.15 = 2.54, then 2.54 - 0.4·(0.575 + 1.127) = 1.8592.
    assert weight.item() == pytest.approx(1.6528)
    assert bias.item() == pytest.approx(1.8592)


@pytest.mark.parametrize(("name", "kind"), [("adam", Adam), ("adamw", AdamW)])
def test_adam_is_two_optimisers_in_one(name, kind):
    mine, others = parameters((2, 3), (3,), (3, 3), ()), parameters((2, 3), (3,), (3, 3), ())
    config = OptimiserConfig(name=name, lr=0.01, weight_decay=0.3, bias_rate=10.0)
    optimiser = make_optimiser(config, mine)
    weights = kind([others[0], others[2], others[3]], lr=0.01, weight_decay=0.3)
    biases = kind([others[1]], lr=0.1, weight_decay=0.03)
    for share in (1.0, 0.5):
        set_rate(optimiser, 0.01 * share)
        set_rate(weights, 0.01 * share)
        set_rate(biases, 0.1 * share)
        for one in (optimiser, weights, biases):
            one.step()
    for a, b in zip(mine, others, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
@pytest.mark.parametrize("shapes", [[(3,), (4,)], [(3, 2)], [()]], ids=["biases alone", "weights alone", "a number"])
@pytest.mark.parametrize("fused", [True, False])
def test_networks_with_one_kind_of_parameter(name, shapes, fused):
    moved = parameters(*shapes)
    before = [parameter.detach().clone() for parameter in moved]
    optimiser = make_optimiser(OptimiserConfig(name=name, lr=0.1, bias_rate=8.0), moved, fused=fused)
    set_rate(optimiser, 0.05)
    optimiser.step()
    assert not any(torch.equal(a, b) for a, b in zip(moved, before, strict=True))
    assert weights_rate(optimiser) == 0.05  # not that of the biases
    expected = 0.4 if len(shapes[0]) == 1 else 0.05
    assert [group["lr"] for group in optimiser.param_groups if group["params"]] == [pytest.approx(expected)]


def test_a_factor_of_one_is_no_second_group():
    assert len(make_optimiser(OptimiserConfig(lr=0.1, bias_rate=1.0), parameters((2, 2), (2,))).param_groups) == 1


@pytest.mark.parametrize("value", [0, -1, "inf"])
def test_factors_that_make_no_sense(value):
    with pytest.raises(InputError, match=r"optimiser\.bias_rate must be"):
        small_config(f"optimiser.bias_rate={value}")


def test_it_does_not_change_the_names_of_runs_that_have_none():
    assert small_config("optimiser.bias_rate=1").run_id == small_config().run_id
    assert small_config("optimiser.bias_rate=2").run_id != small_config().run_id


@pytest.mark.parametrize("seeds", [[3], [3, 4]])
def test_a_step_of_a_run(seeds):
    """One seed alone and seeds side by side: biases take a step that is eight times as long."""
    settings = [f"seeds={seeds}", "optimiser.momentum=0", "optimiser.weight_decay=0", "schedule=constant"]
    steps = {}
    for factor in (1, 8):
        trainer = build(small_config(*settings, f"optimiser.bias_rate={factor}")).trainer
        networks = trainer.method.answer if len(seeds) == 1 else trainer._networks
        before = {name: value.detach().clone() for name, value in networks.named_parameters()}
        next(trainer.steps(0))
        steps[factor] = {name: value.detach() - before[name] for name, value in networks.named_parameters()}
    assert any("bias" in name for name in steps[1])
    for name, step in steps[1].items():
        torch.testing.assert_close(steps[8][name], step * (8 if "bias" in name else 1), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("seeds", [[0], [0, 1]])
@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_a_run_that_was_stopped_goes_on_exactly(tmp_path, seeds, kind):
    config = small_config(f"seeds={seeds}", f"optimiser.name={kind}", "optimiser.bias_rate=4", "ema=0.9")
    execute(config, tmp_path / "whole")
    stop_after(config, tmp_path / "stopped", 2)
    execute(config, tmp_path / "stopped")
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")


@pytest.mark.parametrize("seeds", [[0], [0, 1]])
def test_the_rate_in_the_records_is_that_of_the_weights(tmp_path, seeds):
    execute(small_config(f"seeds={seeds}", "optimiser.bias_rate=16", "schedule=constant"), tmp_path)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert {json.loads(line)["lr"] for line in lines} == {0.05}


def test_methods_with_several_optimisers(tmp_path):
    """Both networks of co-teaching have fast biases; the noise variables of SOP are no biases."""
    path = feature_archive(tmp_path / "f.npz")
    pair = ("method=co-teaching", "method.forget_rate=0.2")
    both = build(own_config(path, *pair, "optimiser.bias_rate=4")).trainer.resources.optimisers
    assert set(both) == {"first", "second"}
    for found in both.values():
        weights, biases = found.optimiser.param_groups
        assert {p.dim() for p in weights["params"]} == {2}
        assert {p.dim() for p in biases["params"]} == {1}
    sop = build(own_config(path, "method=sop", "optimiser.bias_rate=4")).trainer.resources.optimisers
    assert [len(found.optimiser.param_groups) for found in sop.values()] == [2, 1, 1]


def test_what_a_method_learns_by_itself_is_no_bias(monkeypatch):
    class OneNumberForEachRow(methods.Method):
        def __init__(self, setup):
            super().__init__(setup)
            self.answer = setup.network()
            setup.optimiser(list(self.answer.parameters()))
            own = setup.row_state("own").requires_grad_()
            setup.optimiser([own], "own", kind="sgd", lr=3.0, scheduled=False, regularised=False)

        def epoch(self, run):
            raise NotImplementedError

    monkeypatch.setattr(catalogue, "_METHODS", Registry("method"))
    methods.register("mine", OneNumberForEachRow, "for a test")
    optimisers = build(small_config("method=mine", "optimiser.bias_rate=4")).trainer.resources.optimisers
    optimisers["own"].set_rate(0, 1, 1)
    assert [group["lr"] for group in optimisers["own"].optimiser.param_groups] == [3.0]
