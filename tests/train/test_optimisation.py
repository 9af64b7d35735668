"""Schedules, optimisers, clipping and averaging against torch's own and against loops by hand."""

import math

import pytest
import torch
from small_runs import small_config
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    LinearLR,
    MultiStepLR,
    OneCycleLR,
    SequentialLR,
)

from postmax import losses
from postmax.errors import DivergedError, InputError
from postmax.runs import execute
from postmax.train.build import build
from postmax.train.config import OptimiserConfig, ScheduleConfig
from postmax.train.ema import Average
from postmax.train.optimisers import ScheduledOptimiser, add_l1, make_optimiser, set_rate
from postmax.train.schedules import rate
from postmax.train.side_by_side import clip_lanes
from postmax.train.trainer import OneSeedTrainer

STEPS, EPOCHS = 7, 9
TOTAL = STEPS * EPOCHS


def ours(**config):
    return [rate(ScheduleConfig(**config), step, STEPS, EPOCHS) for step in range(TOTAL)]


def theirs(make, steps=TOTAL):
    """The rates a scheduler of torch gives to the steps, for a base rate of 1."""
    optimiser = SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = make(optimiser)
    rates = []
    for step in range(steps):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        if step + 1 < steps:
            scheduler.step()
    return rates


@pytest.mark.parametrize("final", [0.0, 0.05])
def test_cosine(final):
    expected = theirs(lambda o: CosineAnnealingLR(o, TOTAL, eta_min=final))
    assert ours(name="cosine", final=final) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("milestones", [(), (3,), (2, 5, 8), (5, 2)])
def test_step(milestones):
    expected = theirs(lambda o: MultiStepLR(o, [m * STEPS for m in milestones], gamma=0.3))
    assert ours(name="step", milestones=milestones, gamma=0.3) == pytest.approx(expected, rel=1e-12)


def test_constant():
    assert ours(name="constant") == [1.0] * TOTAL


@pytest.mark.parametrize("epochs", [1, 2, 1.5])
def test_warm_up_before_a_cosine(epochs):
    warm = round(epochs * STEPS)

    def make(optimiser):
        parts = [LinearLR(optimiser, 1 / warm, 1.0, warm - 1), CosineAnnealingLR(optimiser, TOTAL - warm)]
        return SequentialLR(optimiser, parts, [warm])

    assert ours(name="cosine", warmup=epochs) == pytest.approx(theirs(make), abs=1e-12)


def test_warm_up_counts_towards_milestones():
    expected = [(step + 1) / STEPS if step < STEPS else 1.0 if step < 3 * STEPS else 0.1 for step in range(TOTAL)]
    assert ours(name="step", milestones=[3], gamma=0.1, warmup=1) == pytest.approx(expected)


def test_a_warm_up_that_never_ends():
    assert ours(name="cosine", warmup=2 * EPOCHS) == [(step + 1) / (2 * TOTAL) for step in range(TOTAL)]


def test_one_cycle():
    rates = ours(name="one-cycle", peak=0.25, final=0.01)
    top = rates.index(max(rates))
    assert rates[0] == pytest.approx(1 / 25)
    assert top == math.ceil(0.25 * TOTAL)
    assert rates[top] == pytest.approx(1, abs=0.01)
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert rates[-1] == pytest.approx(0.01, abs=0.01)


def test_one_cycle_has_the_shape_of_torchs():
    steps, epochs = 100, 20
    config = ScheduleConfig(name="one-cycle", peak=0.3)
    found = [rate(config, step, steps, epochs) for step in range(steps * epochs)]
    expected = theirs(
        lambda o: OneCycleLR(o, 1.0, total_steps=steps * epochs, pct_start=0.3, cycle_momentum=False), steps * epochs
    )
    assert found == pytest.approx(expected, abs=3e-3)  # torch has its top one step earlier


# Optimisers

REFERENCES = {
    "sgd": ({"name": "sgd", "momentum": 0.0}, lambda p: SGD(p, lr=0.1)),
    "momentum": ({"name": "sgd", "momentum": 0.8}, lambda p: SGD(p, lr=0.1, momentum=0.8)),
    "nesterov": (
        {"name": "sgd", "momentum": 0.8, "nesterov": True, "weight_decay": 0.01},
        lambda p: SGD(p, lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.01),
    ),
    "adam": (
        {"name": "adam", "betas": (0.8, 0.95), "weight_decay": 0.01},
        lambda p: Adam(p, lr=0.1, betas=(0.8, 0.95), weight_decay=0.01),
    ),
    "adamw": ({"name": "adamw", "weight_decay": 0.1}, lambda p: AdamW(p, lr=0.1, weight_decay=0.1)),
}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("case", REFERENCES)
def test_optimisers(case, fused):
    config, reference = REFERENCES[case]
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(3, 4, generator=generator), torch.randn(5, generator=generator)]
    mine, plain = ([nn.Parameter(t.clone()) for t in start] for _ in range(2))
    ours_, theirs_ = make_optimiser(OptimiserConfig(lr=0.1, **config), mine, fused=fused), reference(plain)
    for step in range(6):
        for a, b in zip(mine, plain, strict=True):
            a.grad = torch.randn(a.shape, generator=generator)
            b.grad = a.grad.clone()
        for optimiser in (ours_, theirs_):
            set_rate(optimiser, 0.1 / (1 + step))
            optimiser.step()
    for a, b, before in zip(mine, plain, start, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
        assert (a - before).abs().max() > 0.01


def test_sgd_by_hand():
    value, momentum = torch.tensor([1.0, -2.0], dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    parameter = nn.Parameter(value.clone())
    optimiser = make_optimiser(OptimiserConfig(lr=0.1, momentum=0.9, weight_decay=0.01), [parameter])
    for step in range(4):
        gradient = torch.tensor([0.5 * step, 1.0], dtype=torch.float64)
        parameter.grad = gradient.clone()
        optimiser.step()
        momentum = 0.9 * momentum + gradient + 0.01 * value
        value = value - 0.1 * momentum
    torch.testing.assert_close(parameter.data, value)


@pytest.mark.parametrize(
    "overrides",
    [["optimiser.nesterov=true", "optimiser.momentum=0"], ["optimiser.name=adam", "optimiser.betas=[1.5, 0.9]"]],
)
def test_settings_no_optimiser_takes(overrides):
    with pytest.raises(InputError, match="optimiser"):
        make_optimiser(small_config(*overrides).optimiser, [nn.Parameter(torch.zeros(1))])


# Clipping


def lanes_with_gradients(scale):
    generator = torch.Generator().manual_seed(1)
    parameters = [nn.Parameter(torch.zeros(3, *shape)) for shape in ((4, 5), (4,), (2, 4))]
    for parameter in parameters:
        gradient = torch.randn(parameter.shape, generator=generator)
        parameter.grad = gradient * torch.tensor(scale).view(3, *(1,) * (gradient.dim() - 1))
    return [*parameters, nn.Parameter(torch.zeros(3, 2))]  # one has no gradient


def test_clipping_is_that_of_each_lane_alone():
    stacked = lanes_with_gradients([0.01, 1.0, 100.0])
    alone = []
    for lane in range(3):
        parameters = [nn.Parameter(p[lane].detach()) for p in stacked[:-1]]
        for parameter, p in zip(parameters, stacked[:-1], strict=True):
            parameter.grad = p.grad[lane].clone()
        clip_grad_norm_(parameters, 2.0)
        alone.append(parameters)
    clip_lanes(stacked, 2.0)
    for lane in range(3):
        for parameter, p in zip(alone[lane], stacked[:-1], strict=True):
            torch.testing.assert_close(p.grad[lane], parameter.grad, rtol=1e-6, atol=0)
    norms = torch.stack([p.grad.flatten(1).square().sum(1) for p in stacked[:-1]]).sum(0).sqrt()
    assert norms[1:].tolist() == pytest.approx([2.0, 2.0], rel=1e-5)
    assert norms[0] < 1


def test_a_small_gradient_is_not_touched():
    stacked, before = lanes_with_gradients([0.01] * 3), lanes_with_gradients([0.01] * 3)
    clip_lanes(stacked, 2.0)
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(stacked[:-1], before[:-1], strict=True))


def test_a_parameter_that_is_one_number():
    temperature = nn.Parameter(torch.ones(2))  # of two lanes
    temperature.grad = torch.tensor([3.0, 0.5])
    clip_lanes([temperature], 1.0)
    assert temperature.grad.tolist() == pytest.approx([1.0, 0.5])


# The L1 term


def test_the_l1_term_adds_the_gradient_autograd_finds():
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(3, 4, generator=generator), torch.tensor([0.0, -2.0, 5.0])]
    ours_, theirs_ = ([nn.Parameter(t.clone()) for t in start] for _ in range(2))
    sum(p.square().sum() for p in ours_).backward()
    add_l1(ours_, 0.3)
    sum(p.square().sum() + 0.3 * p.abs().sum() for p in theirs_).backward()
    for a, b in zip(ours_, theirs_, strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_the_l1_term_knows_parameters_the_loss_does_not():
    parameter = nn.Parameter(torch.tensor([2.0, -3.0]))
    add_l1([parameter], 0.5)
    assert parameter.grad.tolist() == [0.5, -0.5]


def networks_of(trainer):
    return trainer.method.answer if isinstance(trainer, OneSeedTrainer) else trainer._networks


@pytest.mark.parametrize("clip", [None, 0.05])
@pytest.mark.parametrize("seeds", [[3], [3, 4, 5]])
def test_a_step_with_the_l1_term_is_one_on_the_loss_with_it(seeds, clip):
    """As published: the term is part of the loss, so that its gradient is clipped with the rest, lane by lane."""
    settings = [f"seeds={seeds}", f"optimiser.clip_norm={'null' if clip is None else clip}", "optimiser.momentum=0"]
    with_term = build(small_config(*settings, "optimiser.l1=0.02", "schedule=constant")).trainer
    plain = build(small_config(*settings, "schedule=constant")).trainer
    batch = next(iter(with_term.batches.epoch(0)))
    before = [p.detach().clone() for p in networks_of(with_term).parameters()]
    next(with_term.steps(0))

    network = networks_of(plain)
    parameters = list(network.parameters())
    assert all(torch.equal(p, q) for p, q in zip(parameters, before, strict=True))
    logits, loss = network(batch.inputs), losses.get("fpml", reduction="none")
    values = loss(logits.reshape(-1, logits.shape[-1]), batch.labels.flatten()).view_as(batch.labels)
    total = values.mean(-1).sum() + 0.02 * sum(p.abs().sum() for p in parameters)
    gradients = torch.autograd.grad(total, parameters)
    for lane in range(len(seeds)) if len(seeds) > 1 else [...]:  # one seed alone has no leading dimension
        norm = torch.stack([g[lane].square().sum() for g in gradients]).sum().sqrt()
        scale = 1.0 if clip is None else min(1.0, clip / norm.item())
        for p, q, g in zip(networks_of(with_term).parameters(), before, gradients, strict=True):
            torch.testing.assert_close(p[lane], q[lane] - 0.05 * scale * g[lane], rtol=1e-4, atol=1e-6)
    assert any((0.05 * g).abs().max() > 1e-3 for g in gradients)


# Averages


@pytest.mark.parametrize("decay", [0.5, 0.999])
def test_average_against_a_loop(decay):
    """It follows quickly at first, so that it is not the random weights of the start that are averaged."""
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    average = Average(module, decay)
    names = [name for name, tensor in module.state_dict().items() if tensor.is_floating_point()]
    expected = {name: module.state_dict()[name].double().clone() for name in names}
    generator = torch.Generator().manual_seed(0)
    for step in range(1, 21):
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=generator))
        module(torch.randn(8, 3, generator=generator))  # moves the running statistics
        average.update()
        for name in names:
            keep = min(decay, (1 + step) / (10 + step))
            expected[name] = keep * expected[name] + (1 - keep) * module.state_dict()[name].double()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    places = {name: tensor.data_ptr() for name, tensor in module.state_dict().items()}
    with average.in_place():
        inside = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    for name in names:
        torch.testing.assert_close(inside[name].double(), expected[name], rtol=1e-5, atol=1e-6)
        assert not torch.equal(inside[name], before[name])
    assert inside["1.num_batches_tracked"] == 20
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, before[name])
        assert tensor.data_ptr() == places[name]


def test_an_error_inside_puts_the_weights_back():
    module = nn.Linear(2, 2)
    average = Average(module, 0.5)
    with torch.no_grad():
        module.weight.add_(1)
    before = module.weight.clone()
    with pytest.raises(KeyError), average.in_place():
        raise KeyError
    assert torch.equal(module.weight, before)


def test_averages_can_be_restored():
    module, other = nn.Linear(2, 2), nn.Linear(2, 2)
    first, second = Average(module, 0.5), Average(other, 0.5)
    with torch.no_grad():
        module.weight.add_(1)
        for mine, theirs in zip(other.parameters(), module.parameters(), strict=True):
            mine.copy_(theirs)
    first.update()
    second.restore(first.state())
    for average in (first, second):
        average.update()
    with first.in_place(), second.in_place():
        kept = [t.clone() for t in (module.weight, other.weight, module.bias, other.bias)]
    assert torch.equal(kept[0], kept[1])
    assert torch.equal(kept[2], kept[3])


def test_a_gradient_that_is_no_number_is_a_divergence(tmp_path):
    """Clipping must not break off with an error of its own."""
    config = small_config("optimiser.clip_norm=1", "optimiser.lr=1e30", "loss={divergence: pearson, link: exp}")
    with pytest.raises(DivergedError, match="diverged in epoch"):
        execute(config, tmp_path)


@pytest.mark.parametrize("final", [0.0, 0.05])
def test_restarts(final):
    expected = theirs(lambda o: CosineAnnealingWarmRestarts(o, 3 * STEPS, eta_min=final))
    assert ours(name="restarts", period=3, final=final) == pytest.approx(expected, abs=1e-12)


def test_late_linear():
    found = ours(name="late-linear", milestones=(4,))
    assert found[: 4 * STEPS + 1] == [1.0] * (4 * STEPS + 1)
    falls = [a - b for a, b in zip(found[4 * STEPS :], found[4 * STEPS + 1 :], strict=False)]
    assert falls == pytest.approx([1 / (5 * STEPS)] * len(falls))
    assert found[-1] == pytest.approx(1 / (5 * STEPS))


def test_a_span_stretches_the_schedule_over_some_epochs():
    parameter = nn.Parameter(torch.zeros(1))
    schedule = ScheduleConfig(name="cosine")
    one = ScheduledOptimiser(SGD([parameter], lr=2.0), [parameter], OptimiserConfig(lr=2.0), schedule, (3, 5))
    found = []
    for step in range(TOTAL):
        one.set_rate(step, STEPS, EPOCHS)
        found.append(one.optimiser.param_groups[0]["lr"])
    inside = [2 * rate(schedule, step, STEPS, 2) for step in range(2 * STEPS)]
    assert found == pytest.approx([inside[0]] * 3 * STEPS + inside + [inside[-1]] * 4 * STEPS)
