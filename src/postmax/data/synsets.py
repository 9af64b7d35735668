"""The list of classes that WebVision and ILSVRC12 share: the file `info/synsets.txt` of WebVision."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from postmax.data.catalogue import Request
from postmax.data.request import Needed
from postmax.errors import DataError
from postmax.files import existing_file

MINI_CLASSES = 50
_PAGE = "data.vision.ee.ethz.ch/cvl/webvision/dataset2017.html, after accepting its terms"
_WNID = re.compile(r"n\d{8}")


def of_webvision(archive: str, place: str) -> Needed:
    """Return what an archive of WebVision 1.0 holds. The terms of WebVision allow no download by a program."""
    return Needed((place, f"webvision/{place}"), f"Unpack {archive} of WebVision 1.0 ({_PAGE}).")


SYNSETS = of_webvision("info.tar", "info/synsets.txt")


@dataclass(frozen=True)
class Synsets:
    """The WordNet id and a readable name of each class, in the order of the class indices of WebVision."""

    ids: tuple[str, ...]
    names: tuple[str, ...]

    def first(self, count: int | None) -> Synsets:
        """Return the first `count` classes, or all."""
        return Synsets(self.ids[:count], self.names[:count])


def read_synsets(path: Path) -> Synsets:
    """Read `synsets.txt`, whose lines are like `n01440764 tench, Tinca tinca`.

    Raises:
        DataError: If it is missing, or if a line does not start with a WordNet id that no other line has.
    """
    ids, names = [], []
    for number, line in enumerate(read_lines(path), 1):
        wnid, _, words = line.partition(" ")
        if not _WNID.fullmatch(wnid) or wnid in ids:
            raise DataError(f"{path}: line {number} must start with a WordNet id of its own, it is {line[:40]!r}.")
        ids.append(wnid)
        # Some classes have the same first word ("crane"), so the id is part of the name.
        names.append(f"{wnid} {words.partition(',')[0]}".strip())
    return Synsets(tuple(ids), tuple(names))


def read_lines(path: Path) -> list[str]:
    """Return the lines of an official list, without blank lines at the end.

    Raises:
        DataError: If the file is missing, empty or not text.
    """
    try:
        return existing_file(path).read_text("utf-8").rstrip().splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not text: {error}.") from error


def webvision_folder(request: Request) -> Path:
    """Return the folder of WebVision: `root/webvision`, or `root` itself.

    Raises:
        DataError: If `info/synsets.txt` is in neither.
    """
    return request.find(SYNSETS).parent.parent
