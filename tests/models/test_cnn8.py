"""The 8-layer CNN against its published layers, written out."""

import math

import pytest
import torch
from naive_layers import Naive, images, max_pool, parameters, relu, unlike_new
from torch import nn

from postmax.models import CNN8

# (in, out) of the six convolutions.
CONVOLUTIONS = [(3, 64), (64, 64), (64, 128), (128, 128), (128, 196), (196, 196)]


def test_number_of_parameters():
    convolutions = sum(9 * i * o + o for i, o in CONVOLUTIONS)
    norms = 2 * (64 + 64 + 128 + 128 + 196 + 196 + 256)
    assert parameters(CNN8((3, 32, 32), 10)) == convolutions + norms + (4 * 4 * 196 * 256 + 256) + (256 * 10 + 10)


def test_the_order_of_layers():
    layer = [nn.Conv2d, nn.BatchNorm2d, nn.ReLU]
    network = CNN8((3, 32, 32), 10)
    assert [type(module) for module in network.body] == 3 * [*layer, *layer, nn.MaxPool2d]
    assert [type(module) for module in network.hidden] == [nn.Linear, nn.BatchNorm1d, nn.ReLU]
    convolutions = [module for module in network.modules() if isinstance(module, nn.Conv2d)]
    assert [(c.in_channels, c.out_channels) for c in convolutions] == CONVOLUTIONS
    assert network.hidden[0].in_features == 3136


@pytest.mark.parametrize("training", [False, True])
def test_forward_is_what_the_definition_says(training):
    network = unlike_new(CNN8((3, 16, 16), 10)).train(training)
    naive, x = Naive(network), images(3, 3, 16)
    expected = x
    for first in (0, 7, 14):
        for layer in (first, first + 3):
            expected = relu(naive.norm(f"body.{layer + 1}", naive.conv(f"body.{layer}", expected)))
        expected = max_pool(expected, 2, 2)
    expected = relu(naive.norm("hidden.1", naive.linear("hidden.0", expected.flatten(1))))
    torch.testing.assert_close(network(x), naive.linear("fc", expected))


@pytest.mark.parametrize(("shape", "flat"), [((3, 8, 8), 196), ((1, 28, 28), 9 * 196), ((3, 35, 50), 4 * 6 * 196)])
def test_other_sizes_of_images(shape, flat):
    network = CNN8(shape, 5)
    assert network.hidden[0].in_features == flat
    assert network(torch.zeros(2, *shape)).shape == (2, 5)


def test_weights_start_as_published():
    torch.manual_seed(0)
    network = CNN8((3, 32, 32), 10)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fan_in = 9 * module.in_channels
            bound, bias_bound = math.sqrt(6 / fan_in), 1 / math.sqrt(fan_in)
        elif isinstance(module, nn.Linear):
            bound = math.sqrt(6 / (module.in_features + module.out_features))
            bias_bound = 1 / math.sqrt(module.in_features)
        else:
            continue
        assert 0.99 * bound < module.weight.abs().max() <= bound
        assert abs(module.weight.std().item() / (bound / math.sqrt(3)) - 1) < 0.05
        assert 0 < module.bias.abs().max() <= bias_bound
