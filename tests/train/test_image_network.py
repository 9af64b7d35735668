"""How the networks that estimate noise from images are trained."""

import numpy as np
import pytest
import torch

from postmax.train import image_crossfit, image_network
from postmax.train.image_crossfit import cross_fit_images, measure_cross_fit_seconds
from postmax.train.image_network import augmentation_for, plan_for


def some_images(channels=3):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (30, channels, 12, 12), generator=generator).to(torch.uint8)


def test_only_images_with_colours_are_mirrored():
    assert augmentation_for(some_images()).flip == "alternate"
    assert augmentation_for(some_images(channels=1)).flip is False


@pytest.mark.parametrize("count", [10, 100, 1000, 25_000, 10**6])
def test_every_network_makes_enough_steps(count):
    plan = plan_for(count)
    assert plan.batch * plan.batches <= count
    assert plan.steps >= 600
    assert plan.epochs >= 6


def test_the_cost_is_measured_with_the_steps_that_a_cross_fit_makes(monkeypatch):
    clock = iter(np.arange(100.0))
    monkeypatch.setattr(image_crossfit.time, "perf_counter", lambda: next(clock))
    # A second for all four steps that count: 600 steps, and two thirds of 25 that predict.
    assert measure_cross_fit_seconds(some_images(), 10_000, 3) == pytest.approx((600 + 25 * 2 / 3) / 4)


@pytest.mark.parametrize("count", [62, 63, 64, 95])
def test_no_network_goes_on_after_the_end_of_its_schedule(monkeypatch, count):
    """With 63 images one network has 31 of them, and the other 32: two batches of 16 instead of one."""
    steps = []
    monkeypatch.setattr(image_network, "_LEAST_STEPS", 12)
    monkeypatch.setattr(
        image_network.ScheduledOptimiser,
        "set_rate",
        lambda _, step, batches, epochs: steps.append((step, batches * epochs)),
    )
    images = some_images()[torch.arange(count) % 30]
    cross_fit_images(images, torch.arange(count) % 3, 3)
    assert all(step < planned for step, planned in steps)
    assert max(step for step, _ in steps) == steps[0][1] - 1
