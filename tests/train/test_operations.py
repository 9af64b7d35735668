"""Operations of a training: by hand, from the shapes of the layers."""

import pytest

from postmax.train import make_config
from postmax.train.operations import training_flops


def config_of(model, **data):
    return make_config({"data": {"name": "cifar10", **data}, "model": model, "epochs": 10})


def of_fast(width, side):
    """Return the operations of one image through `fast`, layer by layer."""
    whitened = side - 1
    first, second, third = whitened // 2, whitened // 4, whitened // 8
    layers = [
        (3, 24, 2, whitened),
        (24, width, 3, whitened),
        (width, width, 3, first),
        (width, 4 * width, 3, first),
        (4 * width, 4 * width, 3, second),
        (4 * width, 4 * width, 3, second),
        (4 * width, 4 * width, 3, third),
    ]
    return sum(2 * i * o * k * k * s * s for i, o, k, s in layers) + 2 * 4 * width * 10


@pytest.mark.parametrize("width", [8, 32, 48])
def test_fast_with_small_images(width):
    config = config_of({"name": "fast", "width": width, "test_flips": True}, small=[[0.4, 18], [0.7, 24]])
    each_row = 4 * of_fast(width, 18) + 3 * of_fast(width, 24) + 3 * of_fast(width, 32)
    assert training_flops(config, 1000, (3, 32, 32), 10) == 3 * 1000 * each_row


def test_features():
    assert training_flops(config_of({"name": "mlp", "hidden": []}), 7, (30,), 2) == 3 * 7 * 10 * 120
