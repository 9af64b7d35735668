"""The fully connected network, layer by layer."""

import pytest
import torch
import torch.nn.functional as F
from naive_layers import Naive, parameters, relu, unlike_new
from torch import nn

from postmax.errors import InputError
from postmax.models import MLP


def test_the_order_of_layers():
    kinds = [type(module) for module in MLP((4,), 3, hidden=(8, 6), dropout=0.3, batch_norm=True).body]
    assert kinds == 2 * [nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Dropout]
    assert [type(module) for module in MLP((4,), 3).body] == 2 * [nn.Linear, nn.ReLU]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("batch_norm", [False, True])
def test_forward_is_what_the_definition_says(batch_norm, training):
    network = unlike_new(MLP((2, 3), 3, hidden=(8, 7), batch_norm=batch_norm)).train(training)
    rows = torch.randn(6, 2, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    naive = Naive(network)
    x = rows.reshape(6, 6)
    for layer in (("body.0", "body.1"), ("body.3", "body.4")) if batch_norm else (("body.0",), ("body.2",)):
        x = naive.linear(layer[0], x)
        x = relu(naive.norm(layer[1], x) if batch_norm else x)
    torch.testing.assert_close(network(rows), naive.linear("fc", x))


@pytest.mark.parametrize(
    ("name", "function"), [("relu", F.relu), ("gelu", F.gelu), ("silu", F.silu), ("tanh", torch.tanh)]
)
def test_activations(name, function):
    network, rows = MLP((4,), 3, hidden=(5,), activation=name), torch.randn(6, 4)
    torch.testing.assert_close(network.features(rows), function(network.body[0](rows)))


def test_no_hidden_layer_is_a_linear_model():
    network, rows = MLP((3, 2), 4, hidden=()), torch.randn(5, 3, 2)
    torch.testing.assert_close(network(rows), rows.reshape(5, 6) @ network.fc.weight.T + network.fc.bias)


def test_dropout_is_for_training_only():
    network, rows = MLP((4,), 3, hidden=(400,), dropout=0.25), torch.ones(50, 4)
    kept = network.eval().features(rows)[0] > 0
    assert (network.features(rows)[:, kept] > 0).all()
    dropped = (network.train().features(rows)[:, kept] == 0).float().mean()
    assert 0.2 < dropped < 0.3


def test_number_of_parameters():
    assert parameters(MLP((30,), 2)) == 30 * 128 + 128 + 128 * 64 + 64 + 64 * 2 + 2
    assert parameters(MLP((3, 4, 5), 7, hidden=[6], batch_norm=True)) == 60 * 6 + 6 + 2 * 6 + 6 * 7 + 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 128}, r"hidden lists the widths of the hidden layers, such as \(128, 64\), and not 128"),
        ({"hidden": (8, 0)}, "hidden lists"),
        ({"hidden": "128"}, "hidden lists"),
        ({"dropout": 1.0}, "dropout is the share that is dropped, from 0 to below 1; got 1.0"),
        ({"dropout": -0.1}, "dropout is the share"),
        ({"activation": "rellu"}, "unknown activation 'rellu'. Did you mean 'relu'?"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        MLP((4,), 3, **options)
