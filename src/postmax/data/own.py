"""A person's own data, whatever its format."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from postmax.data.arrays import read_npz
from postmax.data.columns import is_csv, is_parquet
from postmax.data.dataset import Dataset
from postmax.data.files import existing_file, file_digest
from postmax.data.idx import read_idx
from postmax.data.image_folder import read_image_folder
from postmax.data.table_encoder import Missing, TableEncoder
from postmax.data.tables import read_table
from postmax.errors import DataError

_LARGE_FOLDER = 1 << 30
_FORMATS = "CSV or Parquet tables, .npz arrays, IDX images, and folders with one subfolder of images for each class"


def read_own(
    path: str | Path,
    *,
    labels: str | None = None,
    drop: Sequence[str] = (),
    missing: Missing = "error",
    size: int | None = None,
    encoder: TableEncoder | None = None,
) -> Dataset:
    """A file or folder as a data set, by what it is.

    Args:
        path: A CSV or Parquet table, an `.npz`, IDX images, or a folder of images.
        labels: The column of a table, the array of an `.npz`, or the label file of IDX images; where it can be found
            by its usual name it need not be given.
        drop: Columns of a table that are no features.
        missing: What becomes of missing numbers in a table; see `read_table`.
        size: Side to which the images of a folder are brought.
        encoder: How an earlier table was turned into features.

    Raises:
        DataError: If the file is of no known format, or cannot be read.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        return read_image_folder(path, size=size)
    path = existing_file(path)
    if is_csv(path) or is_parquet(path):
        return read_table(path, label=labels, drop=drop, missing=missing, encoder=encoder)
    if path.suffix.lower() == ".npz":
        return read_npz(path, labels=labels)
    if is_idx(path):
        return read_idx(path, idx_labels(path, labels))
    raise DataError(f"{path} is of no format postmax knows: {_FORMATS}.")


def is_table(path: str | Path) -> bool:
    """Whether `read_own` takes the file for a table."""
    return is_csv(Path(path)) or is_parquet(Path(path))


def names_label_file(path: str | Path) -> bool:
    """Whether `labels` names a file for these rows, as it does for IDX images, and not a column or an array."""
    path = Path(path).expanduser()
    return path.is_file() and not is_table(path) and path.suffix.lower() != ".npz" and is_idx(path)


def is_idx(path: Path) -> bool:
    """Whether the file is named or starts like an IDX file; gzipped ones are known by their name."""
    if "idx" in path.name.lower():
        return True
    with path.open("rb") as file:
        return file.read(3) == b"\x00\x00\x08"


def idx_labels(images: Path, given: str | None) -> Path:
    """The label file of IDX images: the one given, or the one named as MNIST names it."""
    if given is not None:
        return existing_file(given)
    beside = images.with_name(images.name.replace("images", "labels").replace("idx3", "idx1"))
    if beside != images and beside.exists():
        return beside
    raise DataError(f"{images}: which file holds the labels? None was given, and there is no {beside.name} beside it.")


def with_classes(dataset: Dataset, classes: tuple[str, ...]) -> Dataset:
    """The same rows with labels counted as in `classes`, of which the data set may have only some.

    Raises:
        DataError: If it has a class that is not among them.
    """
    new = sorted(set(dataset.classes) - set(classes))
    if new:
        raise DataError(f"{dataset.name} has the class {new[0]!r}, which the training rows do not have.")
    place = torch.tensor([classes.index(name) for name in dataset.classes])
    return replace(dataset, labels=place[dataset.labels], classes=classes)


def fingerprint(path: str | Path) -> str:
    """SHA-256 of a file; of a folder, of the names and contents of all files in it.

    Of folders of more than a gigabyte, names and sizes have to do: reading everything twice would take too long.
    """
    path = Path(path).expanduser()
    if not path.is_dir():
        return file_digest(existing_file(path), "sha256")
    files = sorted(file for file in path.rglob("*") if file.is_file())
    sizes = [file.stat().st_size for file in files]
    digest = hashlib.sha256()
    for file, size in zip(files, sizes, strict=True):
        content = file_digest(file, "sha256") if sum(sizes) <= _LARGE_FOLDER else size
        digest.update(f"{file.relative_to(path)}\0{content}\n".encode())
    return digest.hexdigest()
