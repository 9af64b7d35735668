"""The parts of every network are found, and the later ones can be renewed and trained alone."""

import pytest
import torch
from lightning_fabric import Fabric

from postmax import models
from postmax.methods.parts.later_parts import begin_anew, parts_of, these_alone

TABLE, IMAGE = (5,), (3, 16, 16)


def network_of(name, shape=IMAGE, **options):
    return models.get(name, num_classes=3, input_shape=shape, **options)


def names_of(network):
    names = {module: name for name, module in network.named_modules()}
    return [[names[module] for module in part] for part in parts_of(network)]


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (network_of("mlp", TABLE, hidden=()), [["fc"]]),
        (network_of("mlp", TABLE, hidden=(4,)), [["body.0", "body.1"], ["fc"]]),
        (
            network_of("mlp", TABLE, hidden=(4, 6), batch_norm=True, dropout=0.1),
            [["body.0", "body.1", "body.2", "body.3"], ["body.4", "body.5", "body.6", "body.7"], ["fc"]],
        ),
        (network_of("small", width=2), [["body"], ["hidden"], ["fc"]]),
        (network_of("fast", width=2), [["blocks.0"], ["blocks.1"], ["blocks.2"], ["fc"]]),
        (
            network_of("resnet18"),
            [["conv1", "bn1", "maxpool"], ["layer1"], ["layer2"], ["layer3"], ["layer4"], ["fc"]],
        ),
        (network_of("preact-resnet18"), [["conv1", "bn1"], ["layer1"], ["layer2"], ["layer3"], ["layer4"], ["fc"]]),
    ],
    ids=["linear", "one hidden layer", "two hidden layers", "small", "fast", "resnet18", "preact-resnet18"],
)
def test_the_parts_of_a_network(network, expected):
    assert names_of(network) == expected


@pytest.mark.parametrize("name", [name for name in models.names() if name != "resnet50"])
def test_all_weights_of_every_network_are_in_one_part(name):
    network = network_of(name)
    found = [id(p) for part in parts_of(network) for module in part for p in module.parameters()]
    assert sorted(found) == sorted(id(p) for p in network.parameters())
    assert parts_of(network)[-1] == [network.fc]


def test_the_parts_of_a_network_in_mixed_precision():
    network = network_of("mlp", TABLE, hidden=(4, 6))
    wrapped = Fabric(accelerator="cpu", precision="bf16-mixed").setup_module(network)
    assert parts_of(wrapped) == parts_of(network)
    assert len(parts_of(wrapped)) == 3


def test_new_weights_are_those_of_the_fresh_network():
    network, fresh = (network_of("mlp", TABLE, hidden=(4, 6), batch_norm=True) for _ in range(2))
    network(torch.randn(8, *TABLE))  # its batch normalisation has statistics now
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    begin_anew(parts_of(network)[-2:], parts_of(fresh)[-2:])
    for name, tensor in network.state_dict().items():
        is_earlier = name.startswith(("body.0.", "body.1."))
        assert torch.equal(tensor, before[name] if is_earlier else fresh.state_dict()[name])
    assert not torch.equal(before["fc.weight"], network.fc.weight)


def test_only_some_parts_are_trained():
    network = network_of("mlp", TABLE, hidden=(4, 6), batch_norm=True)
    network.body[0].bias.requires_grad_(False)  # what was frozen before stays frozen afterwards
    statistics = network.body[1].running_mean.clone()
    with these_alone(network, parts_of(network)[-2:]):
        network(torch.randn(8, *TABLE)).sum().backward()
        assert {name for name, p in network.named_parameters() if p.grad is not None} == {
            f"{module}.{kind}" for module in ("body.3", "body.4", "fc") for kind in ("weight", "bias")
        }
    assert torch.equal(network.body[1].running_mean, statistics)
    assert network.body[4].running_mean.abs().sum() > 0
    assert {name for name, p in network.named_parameters() if not p.requires_grad} == {"body.0.bias"}
    assert all(module.training for module in network.modules())
