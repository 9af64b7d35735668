"""The fast network: its layers written out, its arithmetic, how it starts, and what is frozen in it."""

import math

import pytest
import torch
from naive_layers import Naive, images, max_pool, parameters, unlike_new

from postmax import models
from postmax.errors import InputError
from postmax.models import Fast
from postmax.train.ema import Average


def network(shape=(3, 12, 12), classes=5, seed=0, **options):
    """A network with whitening of its own, in double precision."""
    torch.manual_seed(seed)
    made = Fast(shape, classes, **{"width": 4, **options})
    made.look_at(torch.rand(20, *shape, generator=torch.Generator().manual_seed(3)))
    return unlike_new(made)


def gelu(x):
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def naive_forward(made, rows):
    """The definition, step by step."""
    naive = Naive(made)
    naive.values["whitening.weight"] = naive.values["whitening.filters"]
    x = gelu(naive.conv("whitening", rows, padding=0))
    for block in ("blocks.0", "blocks.1", "blocks.2"):
        x = gelu(naive.norm(f"{block}.norm1", max_pool(naive.conv(f"{block}.conv1", x), 2, 2)))
        x = gelu(naive.norm(f"{block}.norm2", naive.conv(f"{block}.conv2", x)))
    return naive.linear("fc", x.amax((2, 3)) / 9)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("shape", [(3, 9, 9), (1, 12, 12), (3, 17, 10)])
def test_forward_is_what_the_definition_says(shape, training):
    made = network(shape).train(training)
    rows = torch.randn(4, *shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = naive_forward(made, rows)
    torch.testing.assert_close(made(rows), expected)
    assert expected.std() > 1e-3


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("test_flips", [False, True])
def test_number_of_parameters_and_operations(width, test_flips):
    made, wide = Fast((3, 32, 32), 10, width=width, test_flips=test_flips), 4 * width
    kernels = [24 * width, width**2, width * wide, wide**2, wide**2, wide**2]
    places = [31 * 31, 15 * 15, 15 * 15, 7 * 7, 7 * 7, 3 * 3]
    assert parameters(made) == 9 * sum(kernels) + 2 * width + 4 * wide + wide * 10 + 10
    convolutions = sum(9 * kernel * place for kernel, place in zip(kernels, places, strict=True))
    whitening = 12 * 24 * 31 * 31
    # Test flips are not a part of training, so they do not count.
    assert models.flops(made, (3, 32, 32)) == 2 * (whitening + convolutions + wide * 10)


def test_counting_operations_leaves_modes_as_they_were():
    made = Fast((3, 9, 9), 2, test_flips=True).eval()
    models.flops(made, (3, 9, 9))
    assert not any(module.training for module in made.modules())
    made.train().blocks.eval()
    modes = [module.training for module in made.modules()]
    models.flops(made, (3, 9, 9))
    assert [module.training for module in made.modules()] == modes


def test_first_outputs_begin_as_the_pooled_inputs():
    block = Fast((3, 12, 12), 3, width=8).blocks[1]  # from 8 to 32 channels
    x = images(2, 8, 6).float()
    outputs = block.conv1(x)
    torch.testing.assert_close(outputs[:, :8], x, rtol=0, atol=1e-6)
    pooled = torch.nn.functional.max_pool2d(outputs, 2)[:, :8]
    for row in range(3):
        for column in range(3):
            best = x[:, :, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2].amax((2, 3))
            torch.testing.assert_close(pooled[:, :, row, column], best, rtol=0, atol=1e-6)
    assert block.conv1.weight[8:].std() > 0.01  # the others are random
    kernel = block.conv2.weight  # 32 to 32: all of them are the identity
    expected = torch.zeros_like(kernel)
    expected[range(32), range(32), 1, 1] = 1
    assert torch.equal(kernel, expected)


def test_a_layer_narrower_than_its_input_passes_on_what_it_can():
    kernel = Fast((3, 12, 12), 3, width=4).blocks[0].conv1.weight  # from 24 to 4 channels
    expected = torch.zeros_like(kernel)
    expected[range(4), range(4), 1, 1] = 1
    assert torch.equal(kernel, expected)


def test_test_flips_are_the_mean_of_both_logits_in_evaluation_alone():
    plain, flipping = network(), network(test_flips=True)
    rows = images(4, 3, 12)
    with torch.no_grad():
        expected = (plain.eval()(rows) + plain(rows.flip(3))) / 2
        torch.testing.assert_close(flipping.eval()(rows), expected)
        torch.testing.assert_close(flipping(rows.flip(3)), expected)
        assert not torch.allclose(plain(rows), expected, rtol=1e-2)
        assert torch.equal(flipping.train()(rows), plain.train()(rows))
    buffers = zip(flipping.buffers(), plain.buffers(), strict=True)
    assert all(torch.equal(mine, its) for mine, its in buffers)  # it saw the rows once


def test_test_shifts_are_the_weighted_mean_over_six_views():
    plain = network()
    shifting = Fast((3, 12, 12), 5, width=4, test_flips=True, test_shifts=True).double()
    shifting.load_state_dict(plain.state_dict())
    rows = images(4, 3, 12)
    wider = torch.nn.functional.pad(rows, (1, 1, 1, 1), mode="reflect")
    upper_left, lower_right = wider[:, :, :12, :12], wider[:, :, 2:, 2:]
    with torch.no_grad():
        plain.eval()
        views = [(rows, 1 / 4), (upper_left, 1 / 8), (lower_right, 1 / 8)]
        expected = sum(weight * (plain(view) + plain(view.flip(3))) for view, weight in views)
        torch.testing.assert_close(shifting.eval()(rows), expected)
        assert not torch.allclose(plain(rows), expected, rtol=1e-2)
        assert torch.equal(shifting.train()(rows), plain.train()(rows))


def test_the_last_layer_without_a_bias():
    made, rows = network(bias=False), torch.randn(4, 3, 12, 12, dtype=torch.float64)
    assert made.fc.bias is None
    torch.testing.assert_close(made(rows), made.features(rows) @ made.fc.weight.T)


def test_frozen_parts_are_saved_but_not_learnt():
    made = network()
    learnt = {name for name, _ in made.named_parameters()}
    convolutions = {f"blocks.{i}.conv{j}.weight" for i in range(3) for j in (1, 2)}
    shifts = {f"blocks.{i}.norm{j}.bias" for i in range(3) for j in (1, 2)}
    assert learnt == {*convolutions, *shifts, "fc.weight", "fc.bias"}
    frozen = {"whitening.filters", *(name.replace("bias", "weight") for name in shifts)}
    assert frozen <= set(made.state_dict())
    other = Fast((3, 12, 12), 5, width=4).double().eval()
    other.load_state_dict(made.state_dict())
    rows = images(2, 3, 12)
    assert torch.equal(other(rows), made.eval()(rows))


def test_averaged_weights_leave_frozen_parts_exactly_as_they_are():
    torch.manual_seed(0)
    made = Fast((3, 12, 12), 3, width=4)
    made.look_at(torch.rand(20, 3, 12, 12))
    frozen = {name: made.get_buffer(name).clone() for name in ("whitening.filters", "blocks.0.norm1.weight")}
    average = Average(made, 0.7)
    for _ in range(30):
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.add_(torch.randn_like(parameter))
        average.update()
    weights = made.fc.weight.clone()
    with average.in_place():
        assert not torch.equal(made.fc.weight, weights)
        assert all(torch.equal(made.get_buffer(name), before) for name, before in frozen.items())


def test_one_step_moves_everything_but_the_frozen_parts():
    torch.manual_seed(0)
    made = Fast((3, 12, 12), 3, width=4)
    before = {name: value.clone() for name, value in made.state_dict().items()}
    optimiser = torch.optim.SGD(made.parameters(), lr=0.1, weight_decay=0.1)
    torch.nn.functional.cross_entropy(made(torch.randn(6, 3, 12, 12)), torch.arange(6) % 3).backward()
    optimiser.step()
    frozen = {"whitening.filters", *(name for name in before if "norm" in name and name.endswith(".weight"))}
    same = {name for name, value in made.state_dict().items() if torch.equal(value, before[name])}
    assert same == frozen


def test_looking_at_the_same_rows_gives_the_same_network():
    def state(seed):
        return network(seed=seed).whitening.filters

    assert torch.equal(state(0), state(1))  # the whitening is no random number


def test_many_classes():
    made = Fast((1, 9, 9), 5000, width=2).eval()
    assert made(torch.zeros(3, 1, 9, 9)).shape == (3, 5000)


def test_images_that_are_too_small():
    with pytest.raises(InputError, match=r"fast needs images of at least 9×9 pixels, these have 8×20\. Enlarge them"):
        Fast((3, 8, 20), 10)


@pytest.mark.parametrize("width", [0, -1, 2.5, "32", None, True])
def test_the_width_is_checked(width):
    with pytest.raises(InputError, match="width counts the channels of the first block"):
        Fast((3, 32, 32), 10, width=width)


@pytest.mark.parametrize("name", ["test_flips", "test_shifts"])
@pytest.mark.parametrize("value", ["yes", None, 1, 0.5])
def test_whether_to_flip_or_shift_is_a_truth_value(name, value):
    with pytest.raises(InputError, match=f"{name} is true or false"):
        Fast((3, 32, 32), 10, **{name: value})
