"""Data sets by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from postmax.data.augment import Augment
from postmax.data.dataset import Dataset
from postmax.data.download import RemoteFile, fetch
from postmax.data.files import data_root, first_existing
from postmax.errors import DataError
from postmax.registry import Registry


@dataclass(frozen=True)
class Request:
    """A request to the reader of a data set: which split, and where the files are.

    Attributes:
        root: The folder that holds all data sets.
        split: One of the splits of the data set.
        download: Whether missing files may be downloaded.
    """

    root: Path
    split: str
    download: bool = False

    def file(self, places: Sequence[Path], *, remote: RemoteFile | None = None, how: str) -> Path:
        """Return the first of `places` that exists. If none does, download the file to the last of them.

        Args:
            places: Where the file may be.
            remote: The file to download; None if its licence forbids it.
            how: A sentence that tells a person where to get the file.

        Raises:
            DataError: If the file is missing. The message says which file to put where.
        """
        found = first_existing(places)
        if found is not None:
            return found
        target = places[-1]
        if remote is not None and self.download:
            return fetch(remote, target.parent)
        option = " With download=True it is downloaded." if remote is not None else ""
        raise DataError(f"{target} is missing. {how} Put it there, or give the root your data sets are in.{option}")


@dataclass(frozen=True)
class Source:
    """A registered data set.

    Attributes:
        read: Reads a split.
        splits: The splits it has.
        clean: Whether its training labels count as the true ones.
        augment: What its images go through in training, without statistics; None for no augmentation.
    """

    read: Callable[[Request], Dataset]
    splits: tuple[str, ...]
    clean: bool = True
    augment: Augment | None = None


_SOURCES: Registry[Source] = Registry("data set", package="postmax.data")
_SPLIT_ALIASES = {"val": "test", "validation": "test"}


def register(
    name: str,
    read: Callable[[Request], Dataset],
    *,
    splits: Sequence[str] = ("train", "test"),
    clean: bool = True,
    augment: Augment | None = None,
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

    Raises:
        InputError: If the name is taken.
    """
    _SOURCES.add(Source(read, tuple(splits), clean, augment), name)


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
    return _SOURCES.get(name).read(Request(data_root(root), split, download))
