"""Find and check files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from postmax.errors import DataError

_CHUNK = 1 << 20


def data_root(root: str | Path | None = None) -> Path:
    """Return the folder of all data sets: `root`, or `$POSTMAX_DATA`, or `~/.cache/postmax`."""
    return Path(root or os.environ.get("POSTMAX_DATA") or "~/.cache/postmax").expanduser()


def existing_folder(path: str | Path) -> Path:
    """Return the path if it is a folder.

    Raises:
        DataError: If it is missing or not a folder.
    """
    path = Path(path).expanduser()
    if not path.is_dir():
        raise DataError(f"{path} {'is a file; a folder was expected' if path.exists() else 'does not exist'}.")
    return path


def first_existing(candidates: Sequence[Path]) -> Path | None:
    """Return the first path that exists; None if none does."""
    return next((path for path in candidates if path.exists()), None)


def file_digest(path: Path, algorithm: str) -> str:
    """Return the hexadecimal MD5 or SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def check_digest(path: Path, algorithm: str, expected: str) -> None:
    """Compare a file with its published checksum.

    Raises:
        DataError: If they differ.
    """
    actual = file_digest(path, algorithm)
    if actual != expected:
        raise DataError(
            f"{path}: its {algorithm.upper()} is {actual}, but the published file has {expected}. "
            "The file is damaged or another version; delete it and fetch it again."
        )


def read_at_most(stream: IO[bytes], limit: int, where: str) -> bytes:
    """Return the rest of `stream`, if it is at most `limit` bytes. This stops files that decompress to a huge size.

    Raises:
        DataError: If there is more.
    """
    parts, total = [], 0
    while part := stream.read(min(_CHUNK, limit + 1 - total)):
        parts.append(part)
        total += len(part)
        if total > limit:
            raise DataError(f"{where} holds more than the {limit:,} bytes it may have; it is not what it claims to be.")
    return b"".join(parts)
