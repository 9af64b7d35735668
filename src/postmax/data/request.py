"""What a data set is read from: the files it needs, and the request for one of its splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from postmax.data.download import RemoteFile, fetch
from postmax.data.files import first_existing
from postmax.errors import DataError
from postmax.once import make_once
from postmax.wording import advice


@dataclass(frozen=True)
class Request:
    """A request to the reader of a data set: which split, and where the files are.

    Attributes:
        root: The folder that holds all data sets.
        split: One of the splits of the data set.
        download: Whether missing files may be downloaded.
        name: The name of the data set, for messages.
    """

    root: Path
    split: str
    download: bool = False
    name: str = ""

    def find(self, needed: Needed) -> Path:
        """Return where a needed file is. A missing one is made or, if the request allows it, downloaded.

        Raises:
            DataError: If the file is missing. The message says which file to put where.
        """
        if needed.make is None:
            return self.file(needed.paths(self.root), remote=needed.remote, how=needed.how)
        found, make = needed.found(self.root), needed.make
        if found is None:
            found = needed.paths(self.root)[-1]
            make_once(found, lambda: make(self), what=found.name)
        return found

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
        root = advice(python="give the root your data sets are in", command="set POSTMAX_DATA to the folder it is in")
        raise DataError(f"{target} is missing. {how} Put it there, or {root}.{self._way_to_get(remote)}")

    def _way_to_get(self, remote: RemoteFile | None) -> str:
        if remote is None:
            return ""
        command = f" `postmax data get {self.name}` downloads it." if self.name else ""
        return advice(python=" With download=True it is downloaded.", command=command)


@dataclass(frozen=True)
class Needed:
    """A file or folder that a data set is read from.

    Attributes:
        places: Where it may be, below the folder of all data sets. A download goes to the last of them.
        how: A sentence that tells a person where to get it.
        remote: The file to download; None if its licence forbids it.
        make: Makes the file out of others; None for a file that is published.
        terms: The licence, if a person must know it before the file is used.
    """

    places: tuple[str, ...]
    how: str
    remote: RemoteFile | None = None
    make: Callable[[Request], None] | None = None
    terms: str = ""

    def paths(self, root: Path) -> list[Path]:
        """Return where it may be."""
        return [root / place for place in self.places]

    def found(self, root: Path) -> Path | None:
        """Return where it is; None if it is missing."""
        return first_existing(self.paths(root))
