"""Networks by name: what is found, and what is said when something is not."""

import pytest
import torch
from torch import nn

from postmax import models
from postmax.errors import InputError
from postmax.models import catalogue
from postmax.registry import Registry

IMAGE_NETWORKS = ["cnn7", "cnn8", "fast", "preact-resnet18", "resnet18", "resnet34", "resnet50", "small", "wrn-28-2"]


def test_names():
    assert set(models.names()) >= {"mlp", *IMAGE_NETWORKS}


def get(name="mlp", num_classes=3, input_shape=(5,), **options):
    return models.get(name, num_classes=num_classes, input_shape=input_shape, **options)


@pytest.mark.parametrize("written", ["PreActResNet18", "preact_resnet_18", "preact-resnet18"])
def test_case_and_hyphens_do_not_matter(written):
    assert models.describe(written).name == "preact-resnet18"


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(InputError, match=r"unknown model 'resnet3'\. Did you mean 'resnet34'\?"):
        get("resnet3", input_shape=(3, 32, 32))


@pytest.mark.parametrize("name", models.names())
def test_every_network_says_what_it_is_and_refuses_options_it_has_not(name):
    architecture = models.describe(name)
    assert architecture.name == name
    assert 20 < len(architecture.summary) < 100
    assert "\n" not in architecture.summary
    assert "input_shape" not in architecture.options
    assert architecture.options or name not in ("mlp", *IMAGE_NETWORKS)
    for option in architecture.options:
        with pytest.raises(InputError, match=f"unknown option of {name} '{option}s'.* Did you mean '{option}'"):
            get(name, input_shape=(3, 32, 32), **{f"{option}s": 1})


@pytest.mark.parametrize("name", models.names())
def test_the_defaults_that_are_listed_are_the_defaults(name):
    def network(**options):
        torch.manual_seed(0)
        return get(name, input_shape=(3, 32, 32), **options)

    plain, spelt_out = network(), network(**models.describe(name).options)
    assert str(plain) == str(spelt_out)
    for mine, its in zip(plain.parameters(), spelt_out.parameters(), strict=True):
        assert torch.equal(mine, its)


@pytest.mark.parametrize("num_classes", [1, 0, -3, 2.0, True, None])
@pytest.mark.parametrize("name", ["mlp", "cnn8", "resnet18", "preact-resnet18", "small"])
def test_the_number_of_classes_is_checked(name, num_classes):
    with pytest.raises(InputError, match="num_classes must be a whole number of at least 2"):
        get(name, num_classes, input_shape=(3, 8, 8))


@pytest.mark.parametrize("shape", [(), (0,), (-1, 3), (2.0,), 30, None, "30", (3, True, 8)])
@pytest.mark.parametrize("name", models.names())
def test_what_is_not_a_shape_is_refused(name, shape):
    with pytest.raises(InputError, match="input_shape is the shape of one row"):
        get(name, input_shape=shape)


@pytest.mark.parametrize("name", IMAGE_NETWORKS)
def test_rows_of_a_table_are_sent_to_the_mlp(name):
    with pytest.raises(InputError, match=rf"{name} takes images.*\(30,\) are not images.*use 'mlp'"):
        get(name, input_shape=(30,))
    with pytest.raises(InputError, match="grey images need their one channel"):
        get(name, input_shape=(28, 28))


@pytest.mark.parametrize("name", IMAGE_NETWORKS)
def test_the_smallest_image_is_the_one_that_ends_as_a_pixel(name):
    least = {"resnet50": 32, "fast": 9}.get(name, 8)
    for small in ((3, least - 1, least), (3, least, least - 1)):
        with pytest.raises(InputError, match=rf"{name} needs images of at least {least}×{least}.*Enlarge them, or use"):
            get(name, input_shape=small)
    network = get(name, input_shape=(3, least, least)).eval()
    last = []
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(lambda module, inputs, output: last.append(tuple(output.shape[2:])))
    with torch.no_grad():
        assert network(torch.zeros(1, 3, least, least)).shape == (1, 3)
    assert min(last[-1]) >= 1


def test_what_is_suggested_for_small_images_works():
    with pytest.raises(InputError, match="stem='cifar'"):
        get("resnet50", input_shape=(3, 16, 16))
    with torch.no_grad():
        assert get("resnet50", input_shape=(3, 16, 16), stem="cifar")(torch.zeros(2, 3, 16, 16)).shape == (2, 3)


@pytest.mark.parametrize("name", [name for name in IMAGE_NETWORKS if "init" in models.describe(name).options])
def test_an_unknown_initialisation_is_answered_with_the_nearest(name):
    with pytest.raises(InputError, match=r"unknown initialisation 'fanout'\. Did you mean 'fan-out'\?"):
        get(name, input_shape=(3, 32, 32), init="fanout")


def test_a_network_of_one_s_own(monkeypatch):
    known = Registry("model")
    monkeypatch.setattr(catalogue, "_ARCHITECTURES", known)

    def build(input_shape, num_classes):
        return models.MLP(input_shape, num_classes, hidden=())

    models.register("linear", build, summary="a linear model", aliases=["logistic regression"])
    assert models.describe("Logistic Regression").summary == "a linear model"
    assert get("linear")(torch.zeros(2, 5)).shape == (2, 3)
    assert not models.describe("linear").channels_last
    with pytest.raises(InputError, match="linear has no options, so 'width' cannot be one"):
        get("linear", width=3)


def test_channels_last_is_for_networks_of_images():
    assert all(models.describe(name).channels_last for name in IMAGE_NETWORKS)
    assert not models.describe("mlp").channels_last
