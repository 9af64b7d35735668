"""What a person means by a word: the name of a data set, or a path."""

from __future__ import annotations

from pathlib import Path

from postmax import data
from postmax.errors import InputError
from postmax.files import existing_file
from postmax.registry import unknown_name


def source_of(text: str) -> str | Path:
    """Return the name of a data set, or the path of a file or folder. A name wins; ./name is always a path.

    Raises:
        InputError: If nothing is said.
        DataError: If there is no such file, or if it is not an ordinary file.
        UnknownNameError: If it is neither. The message suggests the nearest data set.
    """
    if not text.strip():
        raise InputError("which data? Give a data set, a file or a folder.")
    if text.lower() in data.names():
        return text.lower()
    path = Path(text).expanduser()
    if not path.suffix and "/" not in text and not path.exists():
        raise unknown_name("data set", text, data.names())
    # A pipe such as /dev/stdin has no other name that could be resolved, so it is refused here.
    if not path.is_dir():
        return existing_file(path)
    return path if path.name.strip(".") else path.resolve()  # `.` and `..` have names too
