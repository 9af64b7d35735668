"""The small network: its layers written out, its arithmetic, its widths."""

import pytest
import torch
from naive_layers import Naive, images, max_pool, parameters, relu, unlike_new

from postmax import models
from postmax.errors import InputError
from postmax.models import Small


@pytest.mark.parametrize("width", [24, 32])
def test_number_of_parameters_and_operations(width):
    network = Small((3, 32, 32), 10, width=width)
    kernels = [16 * 3 * width, 9 * width**2, 18 * width**2, 36 * width**2, 72 * width**2]
    norms = 2 * (width + width + 2 * width + 2 * width + 4 * width + 256)
    dense = 4 * 4 * 4 * width * 256
    assert parameters(network) == sum(kernels) + norms + dense + 256 * 10 + 10
    places = [16 * 16, 16 * 16, 8 * 8, 8 * 8, 4 * 4]
    operations = 2 * (sum(k * p for k, p in zip(kernels, places, strict=True)) + dense + 256 * 10)
    assert models.flops(network, (3, 32, 32)) == operations
    assert 9e6 < operations < 20e6


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("side", [16, 19])
def test_forward_is_what_the_definition_says(side, training):
    network = unlike_new(Small((3, side, side), 5, width=6)).train(training)
    naive, rows = Naive(network), images(4, 3, side)
    x = relu(naive.norm("body.1", naive.conv("body.0", rows, stride=2, padding=1)))
    x = max_pool(relu(naive.norm("body.4", naive.conv("body.3", x))), 2, 2)
    x = relu(naive.norm("body.8", naive.conv("body.7", x)))
    x = max_pool(relu(naive.norm("body.11", naive.conv("body.10", x))), 2, 2)
    x = relu(naive.norm("body.15", naive.conv("body.14", x)))
    x = relu(naive.norm("hidden.1", naive.linear("hidden.0", x.flatten(1))))
    torch.testing.assert_close(network(rows), naive.linear("fc", x))


@pytest.mark.parametrize("width", [0, -1, 2.5, "32", None])
def test_the_width_is_checked(width):
    with pytest.raises(InputError, match="width counts the channels of the first layer"):
        Small((3, 32, 32), 10, width=width)
