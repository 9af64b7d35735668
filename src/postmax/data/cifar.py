"""CIFAR-10 and CIFAR-100 from their official Python files: the folder, or the downloaded tar.gz."""

from __future__ import annotations

import hashlib
import reprlib
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from postmax.cifar_classes import CIFAR100_CLASSES, CIFAR100_COARSE, CIFAR100_SUPERCLASSES
from postmax.data.augment import Augment
from postmax.data.catalogue import Request, register
from postmax.data.dataset import Dataset, Statistics
from postmax.data.download import RemoteFile
from postmax.data.files import read_at_most
from postmax.data.normalisation import STATISTICS
from postmax.data.request import Needed
from postmax.data.safe_pickle import Plain, load_plain
from postmax.errors import DataError
from postmax.files import existing_file

__all__ = ["CIFAR10", "CIFAR100", "CIFAR100_CLASSES", "CIFAR100_COARSE", "CIFAR100_SUPERCLASSES", "Cifar", "read_cifar"]

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
# What the literature does with CIFAR images in training: zero padding of 4, a random crop, a random flip.
AUGMENT = Augment(padding=4)
_PIXELS = 3 * 32 * 32
_LARGEST_FILE = 512 << 20


@dataclass(frozen=True)
class Cifar:
    """The files of CIFAR-10 or CIFAR-100, and what they must contain.

    Attributes:
        folder: The folder inside the archive.
        archive: The published tar.gz.
        files: The files of each split, in order.
        label_key: The key of the labels in the files.
        meta: The file with the names of the classes, and their key in it.
        classes: The names of the classes.
        rows: The number of images of each split. Every class has the same number.
        digests: SHA-256 of the pixels and labels (as bytes) of a split, if it is known.
        superclasses: The superclass of each class, if the files have superclasses.
    """

    name: str
    folder: str
    archive: RemoteFile
    files: Mapping[str, tuple[str, ...]]
    label_key: str
    meta: tuple[str, str]
    classes: tuple[str, ...]
    statistics: Statistics
    rows: Mapping[str, int] = field(default_factory=lambda: {"train": 50_000, "test": 10_000})
    digests: Mapping[str, str] = field(default_factory=dict)
    superclasses: tuple[int, ...] | None = None

    @property
    def needed(self) -> Needed:
        """The folder or the archive."""
        how = f"Download {self.archive.url} (or unpack it as the folder {self.folder})."
        return Needed((self.folder, self.archive.name), how, remote=self.archive)


CIFAR10 = Cifar(
    name="cifar10",
    folder="cifar-10-batches-py",
    archive=RemoteFile(
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a", size=170_498_071
    ),
    files={"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)},
    label_key="labels",
    meta=("batches.meta", "label_names"),
    classes=CIFAR10_CLASSES,
    statistics=STATISTICS["cifar10"],
    digests={
        "train": "1e91790dbaf241617ca1f29a9aba08eb9a62df84cc90676b47edd05ad2ab3c94",
        "test": "9a4c74f5c8b6f2c4e13d3a1dfb43a5a8cda8a9da515e99fd620d2013a1a6287a",
    },
)
CIFAR100 = Cifar(
    name="cifar100",
    folder="cifar-100-python",
    archive=RemoteFile(
        "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85", size=169_001_437
    ),
    files={"train": ("train",), "test": ("test",)},
    label_key="fine_labels",
    meta=("meta", "fine_label_names"),
    classes=CIFAR100_CLASSES,
    statistics=STATISTICS["cifar100"],
    superclasses=CIFAR100_COARSE,
)


def read_cifar(layout: Cifar, request: Request) -> Dataset:
    """Return the images and labels of a split. Everything is verified.

    Raises:
        DataError: If files are missing, damaged, try to run code, or have another content.
    """
    place = request.find(layout.needed)
    wanted = (*layout.files[request.split], layout.meta[0])
    contents = _from_folder(place, wanted) if place.is_dir() else _from_archive(place, layout, wanted)
    meta = contents.pop(layout.meta[0], None)
    if meta is not None:
        _check_names(meta, layout, place)
    parts = [_images_and_labels(contents[name], layout, f"{place}: {name}") for name in layout.files[request.split]]
    images = np.concatenate([part[0] for part in parts])
    labels = np.concatenate([part[1] for part in parts])
    _check_content(images, labels, layout, request.split, place)
    return Dataset(
        name=layout.name,
        inputs=torch.from_numpy(images.reshape(-1, 3, 32, 32)),
        labels=torch.from_numpy(labels),
        classes=layout.classes,
        statistics=layout.statistics,
    )


def _from_folder(folder: Path, wanted: tuple[str, ...]) -> dict[str, Plain]:
    *batches, meta = wanted
    names = wanted if (folder / meta).exists() else batches
    return {name: load_plain(existing_file(folder / name).read_bytes(), str(folder / name)) for name in names}


def _from_archive(path: Path, layout: Cifar, wanted: tuple[str, ...]) -> dict[str, Plain]:
    layout.archive.check(path)
    members = {f"{layout.folder}/{name}": name for name in wanted}
    found: dict[str, Plain] = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.isreg() and member.name in members else None
                if stream is not None:
                    where = f"{path}: {member.name}"
                    found[members[member.name]] = load_plain(read_at_most(stream, _LARGEST_FILE, where), where)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path} is damaged or truncated ({error}); delete it and fetch it again.") from error
    missing = [name for name in members if members[name] not in found]
    if missing:
        raise DataError(f"{path} does not contain {missing[0]}; it is not {layout.archive.name}.")
    return found


def _check_names(meta: Plain, layout: Cifar, place: Path) -> None:
    file, key = layout.meta
    names = meta.get(key)
    if names not in ([name.encode() for name in layout.classes], list(layout.classes)):
        raise DataError(f"{place}: {file} names other classes than {layout.name} has: {reprlib.repr(names)}.")


def _images_and_labels(batch: Plain, layout: Cifar, where: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    images, labels = batch.get("data"), batch.get(layout.label_key)
    if not isinstance(images, np.ndarray) or labels is None:
        raise DataError(f"{where} must hold 'data' and {layout.label_key!r}, it holds {', '.join(sorted(batch))}.")
    codes = _codes(labels, f"{where}: {layout.label_key}")
    if images.dtype != np.uint8 or images.shape != (len(codes), _PIXELS):
        raise DataError(
            f"{where}: 'data' must be {len(codes)} × {_PIXELS} bytes, one row for each label, "
            f"but is {images.dtype} of shape {images.shape}."
        )
    if layout.superclasses is not None and "coarse_labels" in batch:
        expected = np.array(layout.superclasses)[np.clip(codes, 0, len(layout.classes) - 1)]
        if not np.array_equal(_codes(batch["coarse_labels"], f"{where}: coarse_labels"), expected):
            raise DataError(f"{where}: the superclasses do not belong to the classes; the file is damaged.")
    return images, codes


def _codes(labels: object, where: str) -> npt.NDArray[np.int64]:
    if isinstance(labels, np.ndarray):
        labels = labels.tolist()
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise DataError(f"{where} must be one whole number for each row.")
    return np.array(labels, dtype=np.int64)


def _check_content(
    images: npt.NDArray[np.uint8], labels: npt.NDArray[np.int64], layout: Cifar, split: str, place: Path
) -> None:
    rows, classes = layout.rows[split], len(layout.classes)
    if len(labels) != rows:
        raise DataError(f"{place}: the {split} split has {len(labels)} images, {layout.name} has {rows}.")
    if labels.min() < 0 or labels.max() >= classes or (np.bincount(labels, minlength=classes) != rows // classes).any():
        raise DataError(f"{place}: each of the {classes} classes must have {rows // classes} images in {split}.")
    expected = layout.digests.get(split)
    if expected is not None:
        digest = hashlib.sha256(images.tobytes())
        digest.update(labels.astype(np.uint8).tobytes())
        if digest.hexdigest() != expected:
            raise DataError(
                f"{place}: the {split} images and labels are not those of {layout.name}, or not in the official order "
                f"(SHA-256 {digest.hexdigest()} instead of {expected})."
            )


for _layout in (CIFAR10, CIFAR100):
    register(_layout.name, partial(read_cifar, _layout), augment=AUGMENT, files=[_layout.needed])
