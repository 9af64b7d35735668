"""MNIST, Fashion-MNIST and KMNIST, which have the same four files at different addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch

from postmax.data.catalogue import Request, register
from postmax.data.dataset import Dataset, Statistics
from postmax.data.download import RemoteFile
from postmax.data.idx import read_idx
from postmax.data.normalisation import STATISTICS
from postmax.data.request import Needed
from postmax.errors import DataError

_PREFIXES = ("train", "t10k")
_DIGITS = tuple("0123456789")


@dataclass(frozen=True)
class MnistFamily:
    """One of the three data sets.

    Attributes:
        name: Its name, which is also the folder of its files.
        torchvision: The folder in which torchvision keeps it.
        url: The address of the folder of the four files.
        md5: The MD5 of train images, train labels, test images and test labels, gzipped.
        bytes: The sizes of these four files.
        classes: The names of the classes.
        counts: The number of images of each class in each split.
        statistics: Mean and deviation of the pixels, if they are published.
    """

    name: str
    torchvision: str
    url: str
    md5: tuple[str, str, str, str]
    bytes: tuple[int, int, int, int]
    classes: tuple[str, ...]
    counts: Mapping[str, tuple[int, ...]]
    statistics: Statistics | None = None

    @property
    def needed(self) -> tuple[Needed, ...]:
        """Train images, train labels, test images and test labels."""
        names = [f"{prefix}-{stem}-ubyte" for prefix in _PREFIXES for stem in ("images-idx3", "labels-idx1")]
        found = []
        for plain, md5, size in zip(names, self.md5, self.bytes, strict=True):
            remote = RemoteFile(f"{self.url}{plain}.gz", md5, size=size)
            folders = (f"{self.torchvision}/raw", self.name)
            places = tuple(f"{folder}/{name}" for folder in folders for name in (plain, f"{plain}.gz"))
            found.append(Needed(places, f"Download {remote.url}.", remote=remote))
        return tuple(found)


_BALANCED = {"train": (6000,) * 10, "test": (1000,) * 10}
MNIST = MnistFamily(
    "mnist",
    "MNIST",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    (
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
    (9_912_422, 28_881, 1_648_877, 4_542),
    _DIGITS,
    {
        "train": (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
        "test": (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
    },
    STATISTICS["mnist"],
)
FASHION_MNIST = MnistFamily(
    "fashion-mnist",
    "FashionMNIST",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    (
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
    (26_421_880, 29_515, 4_422_102, 5_148),
    ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    _BALANCED,
    STATISTICS["fashion-mnist"],
)
KMNIST = MnistFamily(
    "kmnist",
    "KMNIST",
    "https://codh.rois.ac.jp/kmnist/dataset/kmnist/",
    (
        "bdb82020997e1d708af4cf47b453dcf7",
        "e144d726b3acfaa3e44228e80efcd344",
        "5c965bf0a639b31b8f53240b1b52f4d7",
        "7320c461ea6c1c855c0b718fb2a4b134",
    ),
    (18_165_135, 29_497, 3_041_136, 5_120),
    ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"),
    _BALANCED,
)


def read_mnist(family: MnistFamily, request: Request) -> Dataset:
    """Return the images and labels of a split. The MD5 of gzipped files and the class counts of all files are checked.

    Raises:
        DataError: If a file is missing, damaged, or belongs to another data set.
    """
    first = 0 if request.split == "train" else 2
    paths = []
    for needed in family.needed[first : first + 2]:
        path = request.find(needed)
        if path.suffix == ".gz" and needed.remote is not None:
            needed.remote.check(path)
        paths.append(path)
    dataset = read_idx(*paths, classes=family.classes)
    counts = tuple(torch.bincount(dataset.labels, minlength=len(family.classes)).tolist())
    if counts != tuple(family.counts[request.split]):
        raise DataError(
            f"{paths[1]}: the classes have {counts} images, but those of {family.name} have "
            f"{family.counts[request.split]}. It is the file of another data set, or it is damaged."
        )
    return replace(dataset, name=family.name, statistics=family.statistics)


for _family in (MNIST, FASHION_MNIST, KMNIST):
    register(_family.name, partial(read_mnist, _family), files=_family.needed)
