"""CIFAR-10N and CIFAR-100N: labels that people gave to the training images of CIFAR (Wei et al., ICLR 2022)."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from postmax.data.catalogue import Request, register
from postmax.data.cifar import AUGMENT, CIFAR10, CIFAR100, Cifar, read_cifar
from postmax.data.dataset import Dataset
from postmax.data.download import RemoteFile
from postmax.data.files import check_digest, read_at_most
from postmax.data.request import Needed
from postmax.data.safe_pickle import load_plain
from postmax.errors import DataError
from postmax.files import existing_file

_LARGEST_PICKLE = 64 << 20
_FOLDER = "https://raw.githubusercontent.com/UCSC-REAL/cifar-10-100n/main/data/"
_TERMS = "CC BY-NC 4.0: not for commercial use"


@dataclass(frozen=True)
class HumanLabels:
    """One of the two published label files.

    Attributes:
        images: The data set whose training images were labelled.
        file: The name of the file.
        sha256: The SHA-256 of the file.
        columns: For each name of a data set, the key of its labels in the file.
    """

    images: Cifar
    file: str
    sha256: str
    columns: Mapping[str, str]

    @property
    def needed(self) -> Needed:
        """The label file."""
        how = f"Fetch {self.file} from the folder data of github.com/UCSC-REAL/cifar-10-100n ({_TERMS})."
        remote = RemoteFile(f"{_FOLDER}{self.file}", self.sha256, "sha256")
        return Needed((f"cifar-n/{self.file}", self.file), how, remote=remote, terms=_TERMS)


CIFAR10N = HumanLabels(
    CIFAR10,
    "CIFAR-10_human.pt",
    "873e69c39cb9b5e97fb6bae2d60bb59b38a5cbc31d2b868f7903dcb2b9dd2310",
    {
        "cifar10n-aggregate": "aggre_label",
        "cifar10n-random1": "random_label1",
        "cifar10n-random2": "random_label2",
        "cifar10n-random3": "random_label3",
        "cifar10n-worst": "worse_label",
    },
)
CIFAR100N = HumanLabels(
    CIFAR100,
    "CIFAR-100_human.pt",
    "bd2d80409754d420292d622e15e25248ba21e37d27429efac49c8da723f44394",
    {"cifar100n": "noisy_label"},
)


def read_human_labels(path: Path, expected: HumanLabels) -> dict[str, npt.NDArray[np.int64]]:
    """Return all label columns of a published `.pt` file, also `clean_label`, without running code from the file.

    Raises:
        DataError: If the file is missing, not the published one, or damaged.
    """
    check_digest(existing_file(path), "sha256", expected.sha256)
    try:
        with zipfile.ZipFile(path) as archive:
            member = _only_pickle(archive, path)
            with archive.open(member) as stream:
                data = read_at_most(stream, _LARGEST_PICKLE, f"{path}: {member}")
    except DataError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
        # An encrypted archive raises a RuntimeError.
        raise DataError(f"{path} is damaged or truncated ({error}); download it again.") from error
    content = load_plain(data, str(path))
    rows, classes = expected.images.rows["train"], len(expected.images.classes)
    return {
        column: _checked(content.get(column), rows, classes, f"{path}: {column}")
        for column in ("clean_label", *expected.columns.values())
    }


def _only_pickle(archive: zipfile.ZipFile, path: Path) -> str:
    pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise DataError(f"{path} must hold one data.pkl, it holds {len(pickles)}.")
    return pickles[0]


def _checked(labels: object, rows: int, classes: int, where: str) -> npt.NDArray[np.int64]:
    if not isinstance(labels, np.ndarray) or labels.shape != (rows,) or labels.dtype.kind not in "iu":
        raise DataError(f"{where} must be {rows} whole numbers.")
    if labels.min() < 0 or labels.max() >= classes:
        raise DataError(f"{where} must lie in 0…{classes - 1}.")
    return labels.astype(np.int64)


def read_cifar_n(published: HumanLabels, name: str, request: Request) -> Dataset:
    """Return the training images of CIFAR with human labels. The test split is that of CIFAR.

    Raises:
        DataError: If a file is missing or damaged, or if the images are not in the order of the human labels.
    """
    images = replace(read_cifar(published.images, request), name=name)
    if request.split != "train":
        return images
    path = request.find(published.needed)
    columns = read_human_labels(path, published)
    clean = torch.from_numpy(columns["clean_label"])
    wrong = int((clean != images.labels).sum())
    if wrong:
        raise DataError(
            f"{path}: its clean labels differ from those of {published.images.name} in {wrong} of {len(clean)} rows: "
            "the images are in another order, such as TensorFlow's. Use the official python version of CIFAR."
        )
    return images.with_labels(torch.from_numpy(columns[published.columns[name]]))


for _published in (CIFAR10N, CIFAR100N):
    for _name in _published.columns:
        register(
            _name,
            partial(read_cifar_n, _published, _name),
            clean=False,
            augment=AUGMENT,
            files=[_published.images.needed, _published.needed],
        )
