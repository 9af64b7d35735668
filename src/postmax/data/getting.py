"""Get a data set: download what may be downloaded, compute what is computed, say where the rest goes, and verify."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from postmax.data.catalogue import absent, load, needed_files, splits
from postmax.data.files import data_root
from postmax.data.request import Needed, Request
from postmax.errors import DataError
from postmax.progress import Stage, tell


class Got(NamedTuple):
    """A data set that is complete and verified.

    Attributes:
        name: Its name.
        new: The files that were downloaded or computed now.
        rows: The number of rows of each split.
    """

    name: str
    new: tuple[Path, ...]
    rows: dict[str, int]


def get(name: str, *, root: str | Path | None = None) -> Got:
    """Get everything that a data set is read from, and read all of it once, which verifies it.

    Args:
        name: One of `postmax.data.names()`.
        root: The folder that holds all data sets; `$POSTMAX_DATA` or `~/.cache/postmax` by default.

    Raises:
        InputError: If there is no such data set.
        DataError: If files must be fetched by hand (the message lists all of them, and says which goes where), if a
            download fails, or if a file is damaged.
        MissingDependency: If files have to be computed and a package for that is not installed.

    Example:
        >>> get("digits").rows
        {'all': 1797, 'train': 1438, 'test': 359}
    """
    folder = data_root(root)
    missing = absent(name, folder)
    by_hand = [needed for needed in missing if needed.remote is None and needed.make is None]
    if by_hand:
        raise DataError(f"{name} has to be fetched by hand:\n{instructions(by_hand, folder)}")
    # What is made comes last, because it is made of the others.
    new = [_obtain(needed, name, folder, missing) for needed in sorted(missing, key=lambda one: one.make is not None)]
    rows = {}
    for number, split in enumerate(splits(name)):
        tell(Stage(f"verifying {name}", number, len(splits(name)), "splits"))
        rows[split] = len(load(name, split=split, root=folder))
    return Got(name, tuple(new), rows)


def instructions(missing: list[Needed] | tuple[Needed, ...], root: Path) -> str:
    """Return a line for each missing file: where it goes, how to get it, and its checksum where that is known."""
    lines = []
    for needed in missing:
        remote = needed.remote
        checksum = "" if remote is None else f" Its {remote.algorithm.upper()} is {remote.checksum}."
        lines.append(f"  {needed.paths(root)[-1]}: {needed.how}{checksum}")
    return "\n".join(lines)


def _obtain(needed: Needed, name: str, root: Path, missing: tuple[Needed, ...]) -> Path:
    try:
        if needed.terms:
            tell(Stage(f"{needed.paths(root)[-1].name}: {needed.terms}"))
        return Request(root, splits(name)[0], download=True, name=name).find(needed)
    except DataError as error:
        left = [one for one in missing if one.remote is not None and one.found(root) is None]
        if needed.remote is None or len(left) < 2:
            raise
        raise DataError(f"{error}\nBy hand:\n{instructions(left, root)}") from error


def state_of(name: str, root: Path) -> str:
    """Return whether a data set is here, in a few words.

    Example:
        >>> state_of("digits", Path("nowhere"))
        'needs no files'
    """
    if not needed_files(name):
        return "needs no files"
    missing = absent(name, root)
    if not missing:
        return "here"
    if any(needed.remote is None and needed.make is None for needed in missing):
        return "missing: by hand"
    sizes = [needed.remote.size or 0 for needed in missing if needed.remote is not None]
    parts = [f"can be downloaded{f', {sum(sizes) / 1e6:.0f} MB' if sum(sizes) else ''}"] if sizes else []
    parts += ["features are computed"] if any(needed.make is not None for needed in missing) else []
    return f"missing: {'; '.join(parts)}"
