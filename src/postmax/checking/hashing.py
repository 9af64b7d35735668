"""Numbers for rows, equal where the rows are equal."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_STEP = 0x9E3779B97F4A7C15


def row_hashes(columns: Sequence[npt.NDArray[Any]], rows: int) -> Hashes:
    """Return a number of 64 bits for each row. Numbers of different rows differ, but for one chance in 2^64.

    Args:
        columns: The columns: numbers, or objects such as text.
        rows: How many rows there are, in case that there is no column.

    Example:
        >>> found = row_hashes([np.array([1.0, 2.0, 1.0]), np.array(["a", "a", "a"], dtype=object)], 3)
        >>> bool(found[0] == found[2]), bool(found[0] == found[1])
        (True, False)
    """
    found = np.zeros(rows, np.uint64)
    for place, values in enumerate(columns):
        if values.dtype.kind in "fiub":
            salt = np.uint64((place + 1) * _STEP % 2**64)
            found = _mixed(found ^ _mixed(_bits(values) + salt))
    texts = [values.tolist() for values in columns if values.dtype.kind not in "fiub"]
    if texts:
        cells = (["\0" if cell is None else str(cell) for cell in row] for row in zip(*texts, strict=True))
        found = _mixed(found ^ np.array([_of_bytes("\x1f".join(row).encode()) for row in cells], np.uint64))
    return found


def image_hashes(images: npt.NDArray[np.uint8]) -> Hashes:
    """Return a number for each image (N, C, H, W)."""
    return np.array([_of_bytes(image.tobytes()) for image in images], np.uint64)


def _bits(values: npt.NDArray[Any]) -> Hashes:
    numbers = values.astype(np.float64) + 0.0  # −0 becomes 0
    return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)


def _of_bytes(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def _mixed(bits: Hashes) -> Hashes:
    """Return bits that each depend on all of the given bits (SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))
