"""Data sets by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from postmax.data.augment import Augment
from postmax.data.dataset import Dataset
from postmax.data.files import data_root
from postmax.data.request import Needed, Request
from postmax.errors import DataError
from postmax.registry import Registry

__all__ = [
    "Needed",
    "Request",
    "Source",
    "absent",
    "is_clean",
    "load",
    "names",
    "needed_files",
    "register",
    "splits",
    "usual_augmentation",
]


@dataclass(frozen=True)
class Source:
    """A registered data set.

    Attributes:
        read: Reads a split.
        splits: The splits it has.
        clean: Whether its training labels count as the true ones.
        augment: What its images go through in training, without statistics; None for no augmentation.
        files: What it is read from; empty if it comes with a package.
    """

    read: Callable[[Request], Dataset]
    splits: tuple[str, ...]
    clean: bool = True
    augment: Augment | None = None
    files: tuple[Needed, ...] = ()


_SOURCES: Registry[Source] = Registry("data set", package="postmax.data")
_SPLIT_ALIASES = {"val": "test", "validation": "test"}


def register(
    name: str,
    read: Callable[[Request], Dataset],
    *,
    splits: Sequence[str] = ("train", "test"),
    clean: bool = True,
    augment: Augment | None = None,
    files: Sequence[Needed] = (),
) -> None:
    """Make a data set known under `name`.

    Every module of `postmax.data` is imported before the first lookup, so a new file that calls `register` adds a data
    set. Modules of other packages call it when they are imported.

    Args:
        name: The name for `load`.
        read: Returns the `Dataset` for a `Request`.
        splits: The splits it has.
        clean: Whether the training labels count as the true ones. False if they come from the web or from annotators
            whose mistakes are part of the data set.
        augment: What its images usually go through in training, such as `Augment(padding=4)`. The statistics are not
            part of it: the data set has them itself, or they are computed. None for no augmentation, and for features.
        files: What it is read from. The reader finds each of them with `request.find(needed)`, and `postmax data get`
            downloads them, makes them, or says how to get them.

    Raises:
        InputError: If the name is taken.
    """
    _SOURCES.add(Source(read, tuple(splits), clean, augment, tuple(files)), name)


def names() -> tuple[str, ...]:
    """Return the names that `load` knows, in alphabetical order.

    Example:
        >>> "cifar10n-worst" in names()
        True
    """
    return tuple(sorted(_SOURCES.names()))


def splits(name: str) -> tuple[str, ...]:
    """Return the splits of the data set called `name`.

    Example:
        >>> splits("cifar10")
        ('train', 'test')
    """
    return _SOURCES.get(name).splits


def is_clean(name: str) -> bool:
    """Return whether the training labels of the data set called `name` count as the true ones.

    Example:
        >>> is_clean("cifar10"), is_clean("webvision")
        (True, False)
    """
    return _SOURCES.get(name).clean


def usual_augmentation(name: str) -> Augment | None:
    """Return what images of the data set called `name` usually go through in training; None for no augmentation.

    Example:
        >>> usual_augmentation("cifar10").padding, usual_augmentation("mnist")
        (4, None)
    """
    return _SOURCES.get(name).augment


def needed_files(name: str) -> tuple[Needed, ...]:
    """Return what the data set called `name` is read from; nothing for one that comes with a package.

    Example:
        >>> [needed.places[0] for needed in needed_files("cifar10")]
        ['cifar-10-batches-py']
    """
    return _SOURCES.get(name).files


def absent(name: str, root: str | Path | None = None) -> tuple[Needed, ...]:
    """Return which of its files the data set called `name` lacks.

    Example:
        >>> absent("digits")
        ()
    """
    return tuple(needed for needed in needed_files(name) if needed.found(data_root(root)) is None)


def load(name: str, *, split: str = "train", root: str | Path | None = None, download: bool = False) -> Dataset:
    """Return the data set called `name`, read from its official files.

    Args:
        name: One of `names()`.
        split: `"train"` or `"test"`. `"val"` is the same as `"test"`; for WebVision and ILSVRC12 it is the official
            validation set, because the labels of their test sets are not public. Data sets without an official split
            also have `"all"`.
        root: The folder that holds the files; `$POSTMAX_DATA` or `~/.cache/postmax` by default.
        download: Whether to download missing files, if their licence allows it.

    Raises:
        InputError: If there is no such data set or split.
        DataError: If a file is missing (the message says which file to put where), damaged, or of another version.

    Example:
        >>> load("breast-cancer", split="all").inputs.shape
        torch.Size([569, 30])
    """
    available = splits(name)
    split = _SPLIT_ALIASES.get(split, split)
    if split not in available:
        raise DataError(f"{name} has no split {split!r}; it has {', '.join(available)}.")
    return _SOURCES.get(name).read(Request(data_root(root), split, download, _SOURCES.name_of(name)))
