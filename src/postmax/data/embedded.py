"""CIFAR-10 as features: the activations of a network trained on ImageNet, reduced to principal components."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from postmax.data.catalogue import Request, register
from postmax.data.cifar import CIFAR10, Cifar, read_cifar
from postmax.data.cifar_n import CIFAR10N, read_cifar_n
from postmax.data.dataset import Dataset
from postmax.data.embedding.extractor import features_of
from postmax.data.embedding.networks.efficientnet_lite import efficientnet_lite0
from postmax.data.request import Needed
from postmax.errors import DataError
from postmax.files import atomic_write, load_arrays
from postmax.once import make_once
from postmax.progress import Stage, never_silent, tell

SIZE = 112
DIMENSIONS = 128
_AT_ONCE = 250
_ROWS_OF_A_SUM = 10_000
_SPLITS = ("train", "test")


def features_path(root: Path, size: int = SIZE) -> Path:
    """Return the file in which the features of images enlarged to `size` pixels are kept."""
    return root / f"cifar10-lite0-{size}.npz"


def read_embedded(layout: Cifar, labels: Callable[[Request], Dataset], name: str, request: Request) -> Dataset:
    """Return the rows of an image data set as reduced features, with its labels.

    Args:
        layout: The files of the images.
        labels: Reads the images with their labels.
        name: The name of the result.
        request: The split, and where the files are.

    Raises:
        DataError: If a file is missing or damaged.
        MissingDependency: If the features have to be computed and the network is not installed.
    """
    dataset = labels(request)
    kept = request.find(reduced_features(layout))
    features = dict(zip(_SPLITS, _load(kept, layout), strict=True))[request.split]
    return replace(dataset, name=name, inputs=features, statistics=None)


def reduced_features(layout: Cifar) -> Needed:
    """Return the file of the reduced features, which is made once from the images."""
    file = f"cifar10-lite0-{SIZE}-{DIMENSIONS}.npz"

    def make(request: Request) -> None:
        train, test = load_features(layout, request)
        mean, directions = principal_components(train, DIMENSIONS)
        _save(request.root / file, (train - mean) @ directions, (test - mean) @ directions)

    return Needed((file,), "The features are computed from the images of CIFAR-10, which takes minutes.", make=make)


def load_features(layout: Cifar, request: Request, size: int = SIZE) -> tuple[Tensor, Tensor]:
    """Return all features of the training and test images, float32. They are computed once and kept in a file.

    Raises:
        DataError: If a file is missing or damaged.
        MissingDependency: If the features have to be computed, and the network is not installed.
    """
    path = features_path(request.root, size)

    def make() -> None:
        network = efficientnet_lite0()
        images = [read_cifar(layout, replace(request, split=split)).inputs for split in _SPLITS]
        rows = torch.cat([part[torch.arange(len(part))] for part in images])
        parts, done = [], 0
        for chunk in rows.split(_AT_ONCE):
            parts.append(features_of(network, chunk, size))
            done += len(chunk)
            tell(Stage("computing features", done, len(rows), "images"))
        # Half precision keeps the file at 150 MB.
        train, test = torch.cat(parts).half().split([len(part) for part in images])
        _save(path, train, test)

    with never_silent():
        make_once(path, make, what=path.name)
    return _load(path, layout)


def principal_components(features: Tensor, dimensions: int) -> tuple[Tensor, Tensor]:
    """Return the mean (d,) of features and their directions of largest variance (d, dimensions).

    Of a direction and its opposite the one with a positive largest entry is returned.
    """
    mean = features.mean(0, dtype=torch.float64)
    # Sums over many rows need double precision, and all rows at once would take half a gigabyte.
    scatter = torch.zeros(len(mean), len(mean), dtype=torch.float64)
    for part in features.split(_ROWS_OF_A_SUM):
        centred = part - mean
        scatter += centred.T @ centred
    directions: Tensor = torch.linalg.eigh(scatter).eigenvectors[:, -dimensions:].flip(1)
    largest = directions.gather(0, directions.abs().argmax(0, keepdim=True))
    return mean.float(), (directions * largest.sign()).float()


def _save(path: Path, train: Tensor, test: Tensor) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        np.savez(file, train=train.numpy(), test=test.numpy())


def _load(path: Path, layout: Cifar) -> tuple[Tensor, Tensor]:
    remedy = "Delete it, and it is computed again."
    try:
        arrays = load_arrays(path)
    except DataError as error:
        raise DataError(f"{error} {remedy}") from error
    found = [arrays.get(split) for split in _SPLITS]
    for split, array in zip(_SPLITS, found, strict=True):
        rows = layout.rows[split]
        if array is None or array.dtype.kind != "f" or array.ndim != 2 or len(array) != rows:
            what = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
            raise DataError(f"{path}: {split!r} must be features of {rows} images, it is {what}. {remedy}")
        if not np.isfinite(array).all():
            raise DataError(f"{path}: {split!r} has features that are not finite. {remedy}")
    train, test = (torch.from_numpy(array.astype(np.float32)) for array in found if array is not None)
    if train.shape[1] != test.shape[1]:
        raise DataError(f"{path}: {train.shape[1]} features to train on, but {test.shape[1]} to test. {remedy}")
    return train, test


def _register_all() -> None:
    name, features = f"{CIFAR10.name}-embedded", reduced_features(CIFAR10)
    files = [CIFAR10.needed, features]
    register(name, partial(read_embedded, CIFAR10, partial(read_cifar, CIFAR10), name), files=files)
    for human in CIFAR10N.columns:
        labels, name = partial(read_cifar_n, CIFAR10N, human), f"{human}-embedded"
        files = [CIFAR10N.images.needed, CIFAR10N.needed, features]
        register(name, partial(read_embedded, CIFAR10N.images, labels, name), clean=False, files=files)


_register_all()
