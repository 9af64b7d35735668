"""ResNet18, 34 and 50 against the published counts, and against their definition written out."""

import math

import pytest
import torch
from naive_layers import Naive, images, max_pool, parameters, relu, unlike_new
from torch import nn

from postmax.errors import InputError
from postmax.models import BasicBlock, Bottleneck, ResNet, resnet18, resnet34, resnet50


@pytest.mark.parametrize(
    ("build", "shape", "num_classes", "published"),
    [
        (resnet18, (3, 32, 32), 10, 11_173_962),  # kuangliu/pytorch-cifar
        (resnet34, (3, 32, 32), 10, 21_282_122),
        (resnet50, (3, 224, 224), 1000, 25_557_032),  # torchvision
    ],
)
def test_number_of_parameters(build, shape, num_classes, published):
    assert parameters(build(shape, num_classes)) == published


def test_torchvision_s_resnet18_has_its_count_too():
    assert parameters(resnet18((3, 224, 224), 1000, stem="imagenet")) == 11_689_512


@pytest.mark.parametrize(
    ("build", "depths"), [(resnet18, (2, 2, 2, 2)), (resnet34, (3, 4, 6, 3)), (resnet50, (3, 4, 6, 3))]
)
def test_parameters_have_torchvision_s_names(build, depths):
    convolutions = 3 if build is resnet50 else 2
    layers = ["conv1", "bn1"]
    for stage, depth in enumerate(depths, 1):
        for block in range(depth):
            inside = [f"{kind}{i}" for i in range(1, convolutions + 1) for kind in ("conv", "bn")]
            if block == 0 and (stage > 1 or build is resnet50):
                inside += ["downsample.0", "downsample.1"]
            layers += [f"layer{stage}.{block}.{layer}" for layer in inside]
    layers.append("fc")
    found = {key.rpartition(".")[0] for key in build((3, 64, 64), 10).state_dict()}
    assert found == set(layers)


def naive_block(naive, name, x, stride):
    """The layers in the order of the papers; the last convolution but one of a bottleneck and the first of a basic one
    stride."""
    shortcut = x
    if naive.has(f"{name}.downsample.0"):
        shortcut = naive.norm(f"{name}.downsample.1", naive.conv(f"{name}.downsample.0", x, stride))
    if naive.has(f"{name}.conv3"):
        x = relu(naive.norm(f"{name}.bn1", naive.conv(f"{name}.conv1", x)))
        x = relu(naive.norm(f"{name}.bn2", naive.conv(f"{name}.conv2", x, stride)))
        x = naive.norm(f"{name}.bn3", naive.conv(f"{name}.conv3", x))
    else:
        x = relu(naive.norm(f"{name}.bn1", naive.conv(f"{name}.conv1", x, stride)))
        x = naive.norm(f"{name}.bn2", naive.conv(f"{name}.conv2", x))
    return relu(x + shortcut)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    ("block", "stem", "side"), [(BasicBlock, "cifar", 12), (Bottleneck, "imagenet", 36), (Bottleneck, "cifar", 9)]
)
def test_forward_is_what_the_definition_says(block, stem, side, training):
    network = ResNet((3, side, side), 5, block=block, depths=(2, 1, 2, 1), stem=stem)
    unlike_new(network).train(training)
    naive, rows = Naive(network), images(3, 3, side)
    x = relu(naive.norm("bn1", naive.conv("conv1", rows, stride=1 if stem == "cifar" else 2)))
    if stem == "imagenet":
        x = max_pool(x, 3, 2, pad=1)
    for stage, depth in enumerate((2, 1, 2, 1), 1):
        for i in range(depth):
            x = naive_block(naive, f"layer{stage}.{i}", x, stride=2 if stage > 1 and i == 0 else 1)
    torch.testing.assert_close(network(rows), naive.linear("fc", x.mean((2, 3))))


def a_kernel_and_the_last_layer(init):
    torch.manual_seed(0)
    network = resnet18((3, 32, 32), 10, init=init)
    return network.layer2[0].conv1.weight, network.fc.weight  # 64 → 128 planes, 3×3, and 512 → 10


def test_initialisations():
    kernel, linear = a_kernel_and_the_last_layer("torch")
    assert 0.99 < kernel.abs().max() * math.sqrt(64 * 9) <= 1
    kernel, apl_linear = a_kernel_and_the_last_layer("apl")
    assert 0.99 < kernel.abs().max() / math.sqrt(6 / (64 * 9)) <= 1
    assert 0.99 < apl_linear.abs().max() / math.sqrt(6 / (512 + 10)) <= 1
    kernel, fan_out_linear = a_kernel_and_the_last_layer("fan-out")
    assert abs(kernel.std() / math.sqrt(2 / (128 * 9)) - 1) < 0.02
    assert kernel.abs().max() > 3.5 * kernel.std(), "normal, not uniform"
    for weights in (linear, fan_out_linear):
        assert 0.99 < weights.abs().max() * math.sqrt(512) <= 1


def test_defaults_are_what_was_published():
    def built(build, **options):
        torch.manual_seed(0)
        return build((3, 64, 64), 10, **options)

    for build, published in ((resnet18, "torch"), (resnet34, "torch"), (resnet50, "fan-out")):
        assert torch.equal(built(build).layer1[0].conv2.weight, built(build, init=published).layer1[0].conv2.weight)
        assert isinstance(built(build).maxpool, nn.MaxPool2d) == (build is resnet50)


def test_an_unknown_stem_is_answered_with_the_nearest():
    with pytest.raises(InputError, match=r"unknown stem 'imagnet'\. Did you mean 'imagenet'\?"):
        resnet18((3, 32, 32), 10, stem="imagnet")
