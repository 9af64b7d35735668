"""How the networks that estimate noise from images are trained."""

import numpy as np
import pytest
import torch

from postmax.train import image_crossfit
from postmax.train.image_crossfit import measure_cross_fit_seconds
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
