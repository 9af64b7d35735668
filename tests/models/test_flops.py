"""Operations by arithmetic."""

import pytest
import torch
from torch import nn

from postmax import models


def test_a_convolution_by_arithmetic():
    assert models.flops(nn.Conv2d(3, 7, 5, stride=2, padding=2), (3, 32, 32)) == 2 * (25 * 3 * 7) * (16 * 16)


def test_a_network_by_arithmetic():
    """Two for each weight and each place it is used."""
    sides = [32, 32, 16, 16, 8, 8]
    convolutions = [(3, 64), (64, 64), (64, 128), (128, 128), (128, 196), (196, 196)]
    expected = sum(2 * 9 * i * o * side**2 for (i, o), side in zip(convolutions, sides, strict=True))
    expected += 2 * (3136 * 256 + 256 * 10)
    network = models.get("cnn8", num_classes=10, input_shape=(3, 32, 32))
    assert models.flops(network, (3, 32, 32)) == expected


def test_the_network_is_left_as_it_was():
    network = models.get("cnn8", num_classes=10, input_shape=(3, 8, 8)).train()
    network.hidden.eval()
    modes = [module.training for module in network.modules()]
    before = {key: value.clone() for key, value in network.state_dict().items()}
    models.flops(network, (3, 8, 8))
    assert [module.training for module in network.modules()] == modes
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())
    with pytest.raises(RuntimeError):
        models.flops(network, (4, 8, 8))
    assert [module.training for module in network.modules()] == modes
