"""Muon: its matrix against the singular value decomposition, its steps by hand, and runs that are stopped."""

import pytest
import torch
from small_runs import image_archive, outcome, own_config, small_config, stop_after
from torch import nn

from postmax.errors import InputError
from postmax.runs import execute
from postmax.train.build import build
from postmax.train.config import OptimiserConfig
from postmax.train.muon import MOMENTUM, orthonormal
from postmax.train.optimisers import make_optimiser, set_rate, weights_rate


def singular_values_after(values):
    """Return what three steps of the polynomial 3.4445·x − 4.775·x³ + 2.0315·x⁵ make of singular values."""
    values = values / values.square().sum().sqrt()
    for _ in range(3):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return values


@pytest.mark.parametrize("shape", [(4, 4), (3, 20), (20, 3), (1, 5), (5, 1), (1, 1)])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_it_changes_singular_values_and_keeps_singular_vectors(shape, scale):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    expected = left @ torch.diag(singular_values_after(values)) @ right
    torch.testing.assert_close(orthonormal(matrix * scale), expected, rtol=1e-9, atol=1e-9)


def test_well_conditioned_rows_become_nearly_orthonormal():
    matrix = torch.randn(8, 200, generator=torch.Generator().manual_seed(0))
    found = torch.linalg.svdvals(orthonormal(matrix))
    assert found.min() > 0.6
    assert found.max() < 1.3


@pytest.mark.parametrize("scale", [0.0, 1e-44, 1e37])
def test_extreme_gradients_stay_finite(scale):
    assert orthonormal(torch.eye(3, 5) * scale).isfinite().all()
    assert scale or not orthonormal(torch.eye(3, 5) * scale).any()


def filters_and_more():
    generator = torch.Generator().manual_seed(0)
    shapes = [(4, 2, 3, 3), (5, 4), (4,)]
    return [nn.Parameter(torch.randn(shape, generator=generator, dtype=torch.float64)) for shape in shapes]


@pytest.mark.parametrize("fused", [True, False])
def test_two_steps_by_hand(fused):
    moved = filters_and_more()
    gradients = [[torch.randn_like(parameter) for parameter in moved] for _ in range(2)]
    config = OptimiserConfig(name="muon", lr=0.5, filter_rate=0.05, momentum=0.9, weight_decay=0.1, bias_rate=4)
    filters, weights, biases = (parameter.detach().clone() for parameter in moved)
    total, speed, fast = torch.zeros_like(filters), 0.0, 0.0
    for (g, h, b), share in zip(gradients, (1.0, 0.5), strict=True):
        total = MOMENTUM * total + g
        ahead = (g + MOMENTUM * total).flatten(1)
        filters = filters * (2 / filters.norm())  # four filters: the norm is √4
        filters = filters - 0.05 * share * orthonormal(ahead).view_as(filters)
        speed = 0.9 * speed + h + 0.1 * weights
        weights = weights - 0.5 * share * speed
        fast = 0.9 * fast + b + 0.1 / 4 * biases
        biases = biases - 4 * 0.5 * share * fast
    optimiser = make_optimiser(config, moved, fused=fused)
    for step, share in zip(gradients, (1.0, 0.5), strict=True):
        for parameter, gradient in zip(moved, step, strict=True):
            parameter.grad = gradient.clone()
        set_rate(optimiser, 0.5 * share)
        optimiser.step()
    for parameter, expected in zip(moved, (filters, weights, biases), strict=True):
        torch.testing.assert_close(parameter.detach(), expected)
    assert weights_rate(optimiser) == 0.25


def test_the_scale_of_the_loss_does_not_matter_to_filters():
    small, large = filters_and_more(), filters_and_more()
    for moved, scale in ((small, 1e-6), (large, 1e6)):
        for parameter in moved:
            parameter.grad = parameter.detach().cos() * scale
        make_optimiser(OptimiserConfig(name="muon", lr=0.1), moved).step()
    torch.testing.assert_close(small[0], large[0])
    assert not torch.allclose(small[1], large[1])


def test_filters_without_a_gradient_stay():
    moved = filters_and_more()
    before = moved[0].detach().clone()
    make_optimiser(OptimiserConfig(name="muon"), moved).step()
    assert torch.equal(moved[0], before)


@pytest.mark.parametrize("value", [0.0, 1e-38, 1e30])
def test_filters_of_any_size_stay_finite(value):
    filters = nn.Parameter(torch.full((32, 3, 3, 3), value))
    filters.grad = torch.randn(filters.shape, generator=torch.Generator().manual_seed(0))
    make_optimiser(OptimiserConfig(name="muon", lr=0.1), [filters]).step()
    assert filters.isfinite().all()
    assert filters.any()


def test_a_closure_computes_the_gradients():
    moved = filters_and_more()
    optimiser = make_optimiser(OptimiserConfig(name="muon"), moved)

    def closure():
        value = sum(parameter.square().sum() for parameter in moved)
        value.backward()
        return value

    assert optimiser.step(closure) > 0
    assert all(parameter.grad is not None for parameter in moved)


def test_networks_without_convolutions_are_refused():
    with pytest.raises(InputError, match="muon moves the filters of convolutions, and this network has none: choose"):
        build(small_config("optimiser=muon"))


def test_it_does_not_change_the_names_of_other_runs():
    assert small_config("optimiser.filter_rate=0.05").run_id == small_config().run_id
    assert small_config("optimiser.filter_rate=0.1").run_id != small_config().run_id


def test_a_run_that_was_stopped_goes_on_exactly(tmp_path):
    path = image_archive(tmp_path / "images.npz", side=9)
    config = own_config(path, "model=fast", "model.width=4", "optimiser=muon", "optimiser.bias_rate=8")
    execute(config, tmp_path / "whole")
    stop_after(config, tmp_path / "stopped", 2)
    execute(config, tmp_path / "stopped")
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")
