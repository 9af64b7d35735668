"""IDX files, and the three data sets that are made of them."""

import gzip
import hashlib
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch

from postmax import data
from postmax.data.catalogue import Request
from postmax.data.mnist import FASHION_MNIST, KMNIST, MNIST, read_mnist
from postmax.errors import DataError

GENERATOR = np.random.default_rng(0)
IMAGES = GENERATOR.integers(0, 256, (20, 28, 28)).astype(np.uint8)
LABELS = np.arange(20, dtype=np.uint8) % 10


def idx(array, *, code=8):
    return bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def pair(tmp_path):
    images, labels = tmp_path / "images", tmp_path / "labels"
    images.write_bytes(idx(IMAGES))
    labels.write_bytes(idx(LABELS))
    return images, labels


@pytest.mark.parametrize("zipped", [False, True])
def test_round_trip(pair, zipped):
    if zipped:
        for path in pair:
            path.write_bytes(gzip.compress(path.read_bytes()))
    dataset = data.read_idx(*pair)
    assert torch.equal(dataset.inputs[:, 0], torch.from_numpy(IMAGES))
    assert dataset.labels.tolist() == LABELS.tolist()
    assert dataset.classes == tuple("0123456789")


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 1000, -1])
def test_truncated(pair, length, zipped):
    content = pair[0].read_bytes()
    content = gzip.compress(content)[:length] if zipped else content[:length]
    pair[0].write_bytes(content)
    with pytest.raises(DataError, match="images"):
        data.read_idx(*pair)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx(IMAGES) + b"x", "goes on after"),
        (idx(IMAGES, code=0x0D), "starts with 00 00 0d 03"),
        (idx(LABELS), "swapped"),
        (b"\x89PNG\r\n\x1a\n", "starts with 89 50"),
        (bytes([0, 0, 8, 3]) + struct.pack(">3I", 2**31, 2**31, 2**31), "its header is damaged"),
        (bytes([0, 0, 8, 3]) + struct.pack(">3I", 60000, 28, 28), "is truncated: 0 of 47,040,000"),
        (idx(IMAGES[:19]), "19 images, but .* 20 labels"),
        (b"\x1f\x8b" + b"not gzip at all", "damaged or truncated"),
        (gzip.compress(idx(IMAGES))[:-8] + bytes(8), "damaged or truncated"),
    ],
)
def test_damage_is_named(pair, content, message):
    pair[0].write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        data.read_idx(*pair)
    assert str(pair[0]) in str(error.value)


def test_label_without_a_class(pair):
    pair[1].write_bytes(idx(np.array([0, 1, 2] + [0] * 17, dtype=np.uint8)))
    with pytest.raises(DataError, match="the 3rd row has label 2, outside 0…1"):
        data.read_idx(*pair, classes=("a", "b"))


def test_empty_folder_and_missing(pair, tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        data.read_idx(tmp_path / "none", pair[1])
    with pytest.raises(DataError, match="is a folder"):
        data.read_idx(tmp_path, pair[1])
    pair[0].write_bytes(idx(IMAGES[:0]))
    pair[1].write_bytes(idx(LABELS[:0]))
    with pytest.raises(DataError, match="no images"):
        data.read_idx(*pair)


def small(family, *contents):
    md5 = tuple(hashlib.md5(content).hexdigest() for content in contents)
    return replace(family, md5=md5 * 2, counts={"train": (2,) * 10, "test": (2,) * 10})


@pytest.mark.parametrize("family", [MNIST, FASHION_MNIST, KMNIST], ids=lambda f: f.name)
@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("torchvision", [False, True])
def test_official_layout(tmp_path, family, split, zipped, torchvision):
    folder = tmp_path / family.torchvision / "raw" if torchvision else tmp_path / family.name
    folder.mkdir(parents=True)
    contents = [gzip.compress(idx(a)) if zipped else idx(a) for a in (IMAGES, LABELS)]
    prefix = "train" if split == "train" else "t10k"
    for stem, content in zip(("images-idx3", "labels-idx1"), contents, strict=True):
        (folder / f"{prefix}-{stem}-ubyte{'.gz' if zipped else ''}").write_bytes(content)
    dataset = read_mnist(small(family, *contents), Request(tmp_path, split))
    assert dataset.name == family.name
    assert dataset.classes == family.classes
    assert dataset.inputs.shape == (20, 1, 28, 28)


def test_the_files_of_another_member(tmp_path):
    (tmp_path / "mnist").mkdir()
    for stem, array in (("images-idx3", IMAGES), ("labels-idx1", np.zeros(20, np.uint8))):
        (tmp_path / "mnist" / f"train-{stem}-ubyte").write_bytes(idx(array))
    with pytest.raises(DataError, match="the file of another data set"):
        read_mnist(small(MNIST, b"", b""), Request(tmp_path, "train"))
    (tmp_path / "mnist" / "train-labels-idx1-ubyte").unlink()
    (tmp_path / "mnist" / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(LABELS)))
    with pytest.raises(DataError, match=r"train-labels-idx1-ubyte\.gz: its MD5 is"):
        read_mnist(MNIST, Request(tmp_path, "train"))


def test_missing_names_the_file(tmp_path):
    with pytest.raises(
        DataError, match=r"kmnist/t10k-images-idx3-ubyte\.gz is missing\. Download https://codh.*download=True"
    ):
        data.load("kmnist", split="test", root=tmp_path)


def test_counts_are_those_of_the_published_sets():
    for family in (MNIST, FASHION_MNIST, KMNIST):
        assert sum(family.counts["train"]) == 60_000
        assert sum(family.counts["test"]) == 10_000
