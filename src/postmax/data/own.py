"""Read data of your own, in any of the known formats."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from postmax.data.arrays import read_npz
from postmax.data.columns import CSV
from postmax.data.dataset import Dataset
from postmax.data.embedding.text_column import REFUSE
from postmax.data.files import file_digest
from postmax.data.idx import read_idx
from postmax.data.image_folder import read_image_folder
from postmax.data.label_text import spelling
from postmax.data.number_text import Decimal
from postmax.data.reading import ReadingOptions, refuse_idle_for_file
from postmax.data.table_encoder import Missing, TableEncoder
from postmax.data.tables import read_table
from postmax.data.typed_files import ARROW, PARQUET
from postmax.errors import DataError, InputError
from postmax.files import existing_file
from postmax.wording import advice

# How the names of tables end.
TABLES = CSV | PARQUET | ARROW
_LARGE_FOLDER = 1 << 30
_FORMATS = (
    "CSV, Parquet or Arrow tables, .npz arrays, IDX images, and folders with one subfolder of images for each class"
)


def read_own(
    path: str | Path,
    *,
    labels: str | None = None,
    drop: Sequence[str] = (),
    missing: Missing = "error",
    decimal: Decimal = ".",
    encoding: str | None = None,
    merge_labels: bool = False,
    size: int | None = None,
    text: str = REFUSE,
    encoder: TableEncoder | None = None,
    min_classes: int = 1,
    leave_out: bool = False,
) -> Dataset:
    """Return a file or folder as a data set. Its format follows from its name and its first bytes.

    Args:
        path: A CSV, Parquet or Arrow table, an `.npz`, IDX images, or a folder of images.
        labels: The column of a table, the array of an `.npz`, or the label file of IDX images. It is not needed if it
            has a usual name.
        drop: Columns of a table that are not features.
        missing: What to do with missing numbers in a table; see `read_table`.
        decimal: The sign before the decimals of a number in a table.
        encoding: The encoding of a CSV file; see `read_table`.
        merge_labels: Whether labels of a table that differ only in case or white space are one class.
        size: The side of the images of a folder after scaling.
        text: What to do with free text in a table; see `read_table`.
        encoder: The encoder of an earlier table, to turn columns into the same features.
        min_classes: How many classes the labels must have at least.
        leave_out: Whether columns of a table that cannot be features are left out with a note.

    Raises:
        DataError: If the format of the file is unknown, or if the file cannot be read.
        InputError: If an option has no meaning for a file of this kind.
    """
    path = Path(path).expanduser()
    reading = ReadingOptions(labels, tuple(drop), missing, decimal, encoding, merge_labels)
    if path.is_dir():
        if is_table(path):
            raise DataError(f"{path} is a folder; a file was expected, because its name is that of a table.")
        refuse_idle_for_file(path, reading)
        return _at_least(min_classes, read_image_folder(path, size=size), path)
    path = existing_file(path)
    if size is not None:
        raise InputError(
            f"{path}: {advice(python='size', command='data.size')} is for the images of a folder, but this is a file."
        )
    if is_table(path):
        return read_table(
            path, **vars(reading), text=text, encoder=encoder, min_classes=min_classes, leave_out=leave_out
        )
    if path.suffix.lower() == ".npz":
        refuse_idle_for_file(path, reading)
        return _at_least(min_classes, read_npz(path, labels=labels), path)
    if is_idx(path):
        refuse_idle_for_file(path, reading)
        return _at_least(min_classes, read_idx(path, idx_labels(path, labels)), path)
    raise DataError(f"{path} has an unknown format. postmax reads {_FORMATS}.")


def _at_least(min_classes: int, dataset: Dataset, path: Path) -> Dataset:
    if dataset.num_classes < min_classes:
        raise DataError(f"{path}: it has one class only, {dataset.classes[0]!r}: a classifier needs at least two.")
    return dataset


def is_table(path: str | Path) -> bool:
    """Return whether `read_own` reads the file as a table."""
    return Path(path).suffix.lower() in TABLES


def names_label_file(path: str | Path) -> bool:
    """Return whether the labels of these rows are in another file, as for IDX images."""
    path = Path(path).expanduser()
    return path.is_file() and not is_table(path) and path.suffix.lower() != ".npz" and is_idx(path)


def is_idx(path: Path) -> bool:
    """Return whether the name or the first bytes of a file are those of an IDX file."""
    if "idx" in path.name.lower():
        return True
    with path.open("rb") as file:
        return file.read(3) == b"\x00\x00\x08"


def idx_labels(images: Path, given: str | None) -> Path:
    """Return the label file of IDX images: the given one, or the one with the name that MNIST uses."""
    if given is not None:
        return existing_file(given)
    beside = images.with_name(images.name.replace("images", "labels").replace("idx3", "idx1"))
    if beside != images and beside.exists():
        return beside
    option = advice(python="Name it with labels=.", command="Name it with --label FILE.")
    raise DataError(f"{images}: which file holds the labels? There is no {beside.name} beside it. {option}")


def with_classes(dataset: Dataset, classes: tuple[str, ...], *, merge_labels: bool = False) -> Dataset:
    """Return the same rows with labels that are indices into `classes`. The data set may have only some of the classes.

    Args:
        dataset: The rows.
        classes: The names of all classes.
        merge_labels: Whether names that differ only in upper and lower case or white space are the same class.

    Raises:
        DataError: If the data set has a class that is not in `classes`.
    """
    if merge_labels:
        usual = {spelling(name): name for name in classes}
        dataset = replace(dataset, classes=tuple(usual.get(spelling(name), name) for name in dataset.classes))
    new = sorted(set(dataset.classes) - set(classes))
    if new:
        which = f"the class {new[0]!r}" if len(new) == 1 else f"the classes {', '.join(map(repr, new[:5]))}"
        raise DataError(f"{dataset.name} has {which}, which the training rows do not have.")
    place = torch.tensor([classes.index(name) for name in dataset.classes])
    return replace(dataset, labels=place[dataset.labels], classes=classes)


def fingerprint(path: str | Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of all files in a folder.

    For a folder of more than a gigabyte it is that of names and sizes, because reading all files would take too long.
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
