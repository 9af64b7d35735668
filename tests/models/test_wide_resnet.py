"""WRN-28-2: its count by arithmetic, and its definition written out."""

import pytest
import torch
from naive_layers import Naive, images, parameters, relu, unlike_new

from postmax.models import WRN28x2

STAGES = [(16, 32), (32, 64), (64, 128)]


def test_number_of_parameters():
    total = 9 * 3 * 16
    for i, o in STAGES:
        first = 2 * i + 9 * i * o + 2 * o + 9 * o * o + i * o
        other = 2 * o + 9 * o * o + 2 * o + 9 * o * o
        total += first + 3 * other
    total += 2 * 128 + 128 * 10 + 10
    assert parameters(WRN28x2((3, 32, 32), 10)) == total == 1_467_610


@pytest.mark.parametrize("training", [False, True])
def test_forward_is_what_the_definition_says(training):
    network = unlike_new(WRN28x2((3, 12, 12), 5)).train(training)
    naive, rows = Naive(network), images(3, 3, 12)
    x = naive.conv("conv1", rows)
    for i in range(12):
        name, stride = f"blocks.{i}", 2 if i in (4, 8) else 1
        out = naive.conv(f"{name}.conv1", relu(naive.norm(f"{name}.bn1", x)), stride)
        out = naive.conv(f"{name}.conv2", relu(naive.norm(f"{name}.bn2", out)))
        x = out + (naive.conv(f"{name}.shortcut", x, stride) if naive.has(f"{name}.shortcut") else x)
    expected = relu(naive.norm("bn", x)).mean((2, 3))
    torch.testing.assert_close(network(rows), naive.linear("fc", expected))
