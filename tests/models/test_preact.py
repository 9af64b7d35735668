"""DivideMix's pre-activation ResNet18: its count by arithmetic, and its definition written out."""

import pytest
import torch
from naive_layers import Naive, images, parameters, relu, unlike_new

from postmax.models import PreActResNet18

STAGES = [(64, 64), (64, 128), (128, 256), (256, 512)]


def test_number_of_parameters():
    total = 9 * 3 * 64
    for i, o in STAGES:
        first = 2 * i + 9 * i * o + 2 * o + 9 * o * o
        second = 2 * o + 9 * o * o + 2 * o + 9 * o * o
        total += first + second + (i * o if i != o else 0)
    total += 512 * 10 + 10
    assert total == 11_171_146, "kuangliu's PreActResNet18, which has no normalisation in its stem"
    assert parameters(PreActResNet18((3, 32, 32), 10)) == total + 2 * 64


@pytest.mark.parametrize("training", [False, True])
def test_forward_is_what_the_definition_says(training):
    network = unlike_new(PreActResNet18((3, 12, 12), 5)).train(training)
    naive, rows = Naive(network), images(3, 3, 12)
    x = relu(naive.norm("bn1", naive.conv("conv1", rows)))
    for stage in range(1, 5):
        for i in range(2):
            name, stride = f"layer{stage}.{i}", 2 if stage > 1 and i == 0 else 1
            x = relu(naive.norm(f"{name}.bn1", x))
            shortcut = naive.conv(f"{name}.shortcut", x, stride) if naive.has(f"{name}.shortcut") else x
            x = naive.conv(f"{name}.conv1", x, stride)
            x = naive.conv(f"{name}.conv2", relu(naive.norm(f"{name}.bn2", x))) + shortcut
    torch.testing.assert_close(network(rows), naive.linear("fc", x.mean((2, 3))))


def test_the_last_sum_is_not_activated():
    torch.manual_seed(0)
    assert (PreActResNet18((3, 16, 16), 5).features(torch.randn(4, 3, 16, 16)) < 0).any()
