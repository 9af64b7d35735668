"""What holds for every network there is."""

import io
import random
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from naive_layers import unlike_new
from torch import nn

from postmax import models

SHAPES = {"mlp": (5,), "resnet50": (3, 32, 32)}
# resnet34 is resnet18 with more of the same blocks, and takes twice the time.
EVERYONE = [name for name in models.names() if name != "resnet34"]
NORMALISED = ["cnn7", "cnn8", "fast", "preact-resnet18", "resnet18", "resnet50", "small", "wrn-28-2"]
everyone = pytest.mark.parametrize("name", EVERYONE)
normalised = pytest.mark.parametrize("name", NORMALISED)


def shape_for(name):
    return SHAPES.get(name, (3, 12, 12))


def build(name, num_classes=3, seed=0, **options):
    torch.manual_seed(seed)
    return models.get(name, num_classes=num_classes, input_shape=shape_for(name), **options)


def rows_for(name, count=4):
    return torch.randn(count, *shape_for(name), generator=torch.Generator().manual_seed(1))


@everyone
@pytest.mark.parametrize("num_classes", [2, 7])
def test_logits_are_the_linear_layer_of_the_features(name, num_classes):
    network = build(name, num_classes).eval()
    rows = rows_for(name)
    with torch.no_grad():
        logits, features = network(rows), network.features(rows)
    assert logits.shape == (4, num_classes)
    assert features.shape == (4, network.fc.in_features)
    assert torch.equal(logits, F.linear(features, network.fc.weight, network.fc.bias))
    assert logits.isfinite().all()
    assert logits.std(dim=0).min() > 0, "rows that differ must get logits that differ"


@everyone
def test_the_gradient_reaches_every_parameter(name):
    # New batch normalisations shift nothing, and then the scale of one that feeds another cancels.
    network = unlike_new(build(name)).train()
    F.cross_entropy(network(rows_for(name).double()), torch.arange(4) % 3).backward()
    # What shifts the input of a batch normalisation cancels, always.
    cancels = re.compile(r"(body|hidden)\.\d+\.bias" if name in ("cnn7", "cnn8") else r"nothing")
    norms = {parameter: float(value.grad.norm()) for parameter, value in network.named_parameters()}
    kinds = {parameter: type(network.get_submodule(parameter.rpartition(".")[0])) for parameter in norms}
    for parameter, norm in norms.items():
        if cancels.fullmatch(parameter) and kinds[parameter] in (nn.Conv2d, nn.Linear):
            assert norm < 1e-12, parameter
        else:
            assert 1e-6 < norm < float("inf"), parameter


@normalised
def test_a_row_depends_on_its_batch_in_training_only(name):
    network, rows = build(name), rows_for(name)
    statistics = {key: value.clone() for key, value in network.named_buffers()}
    with torch.no_grad():
        network.eval()
        torch.testing.assert_close(network(rows)[:2], network(rows[:2]), rtol=1e-4, atol=1e-5)
        assert all(torch.equal(value, statistics[key]) for key, value in network.named_buffers())
        network.train()
        assert not torch.allclose(network(rows)[:2], network(rows[:2]), rtol=1e-2, atol=1e-2)
    running = [key for key in statistics if "running" in key]
    assert running
    assert not any(torch.equal(network.get_buffer(key), statistics[key]) for key in running)


def is_identity(kernel):
    """Whether a convolution starts as the identity, for every seed."""
    return kernel.dim() == 4 and torch.equal(kernel, torch.nn.init.dirac_(torch.empty_like(kernel)))


@everyone
def test_weights_are_a_function_of_torch_s_seed_alone(name):
    def weights(seed, other):
        random.seed(other)
        np.random.seed(other)  # noqa: NPY002  (the global state is the point)
        return build(name, seed=seed).state_dict()

    first, again, another = weights(3, other=1), weights(3, other=2), weights(4, other=1)
    assert all(torch.equal(first[key], again[key]) for key in first)
    kernels = [key for key in first if key.endswith("weight") and first[key].dim() > 1 and not is_identity(first[key])]
    assert kernels
    assert not any(torch.equal(first[key], another[key]) for key in kernels)


@everyone
def test_a_saved_network_comes_back(name):
    network, other, rows = build(name, seed=1), build(name, seed=2), rows_for(name)
    with torch.no_grad():
        network(rows)  # moves the statistics of batch normalisation
    network.eval()
    other.eval()
    file = io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    with torch.no_grad():
        assert not torch.equal(other(rows), network(rows))
        other.load_state_dict(torch.load(file, weights_only=True))
        assert torch.equal(other(rows), network(rows))


@normalised
def test_channels_last_changes_the_layout_and_not_the_logits(name):
    network, rows = build(name).eval(), rows_for(name)
    with torch.no_grad():
        before = network(rows)
        network.to(memory_format=torch.channels_last)
        after = network(rows.to(memory_format=torch.channels_last))
    torch.testing.assert_close(after, before, rtol=1e-3, atol=1e-4)


@normalised
@pytest.mark.parametrize("channels", [1, 4])
def test_images_of_any_channels_and_oblong_ones(name, channels):
    shape = (channels, 32, 40)
    network = models.get(name, num_classes=3, input_shape=shape).eval()
    with torch.no_grad():
        assert network(torch.zeros(2, *shape)).shape == (2, 3)


@pytest.mark.parametrize("name", ["mlp", "cnn8", "fast", "small"])
def test_it_memorises_random_labels(name):
    network, rows, labels = build(name), rows_for(name, 8), torch.arange(8) % 3
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(20):
        optimiser.zero_grad()
        F.cross_entropy(network(rows), labels).backward()
        optimiser.step()
    assert torch.equal(network(rows).argmax(1), labels)
