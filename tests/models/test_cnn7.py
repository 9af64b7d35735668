"""JoCoR's 7-layer CNN against its published layers, written out."""

import pytest
import torch
from naive_layers import Naive, images, max_pool, parameters, relu, unlike_new

from postmax.models import CNN7

# (in, out) of the six convolutions.
CONVOLUTIONS = [(3, 64), (64, 64), (64, 128), (128, 128), (128, 196), (196, 16)]


@pytest.mark.parametrize("classes", [10, 100])
def test_number_of_parameters(classes):
    convolutions = sum(9 * i * o + o for i, o in CONVOLUTIONS)
    norms = 2 * sum(o for _, o in CONVOLUTIONS)
    assert parameters(CNN7((3, 32, 32), classes)) == convolutions + norms + 256 * classes + classes


@pytest.mark.parametrize("training", [False, True])
def test_forward_is_what_the_definition_says(training):
    network = unlike_new(CNN7((3, 16, 16), 10)).train(training)
    naive, x = Naive(network), images(3, 3, 16)
    expected = x
    for first in (0, 7, 14):
        for layer in (first, first + 3):
            expected = relu(naive.norm(f"body.{layer + 1}", naive.conv(f"body.{layer}", expected)))
        expected = max_pool(expected, 2, 2)
    torch.testing.assert_close(network(x), naive.linear("fc", expected.flatten(1)))
