"""Read IDX files, the format of MNIST: a big-endian header, then bytes."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import torch

from postmax.data.dataset import Dataset
from postmax.errors import DataError
from postmax.files import existing_file
from postmax.row_names import PLACES

_UNSIGNED_BYTES = 0x08
_LARGEST = 4 << 30


def read_idx(images: str | Path, labels: str | Path, *, classes: tuple[str, ...] | None = None) -> Dataset:
    """Return images and labels from a pair of IDX files, plain or gzipped.

    Args:
        images: A file of N × H × W bytes (magic number 2051).
        labels: A file of N bytes (magic number 2049).
        classes: The names of the classes; by default the numbers up to the largest label.

    Raises:
        DataError: If a file is missing, truncated, too long or not IDX, or if the files have different numbers of rows.
    """
    pixels, codes = read_idx_array(images, dimensions=3), read_idx_array(labels, dimensions=1)
    if len(pixels) != len(codes):
        raise DataError(f"{images} has {len(pixels)} images, but {labels} has {len(codes)} labels.")
    if not len(codes):
        raise DataError(f"{images} has no images.")
    names = classes or tuple(map(str, range(int(codes.max()) + 1)))
    if codes.max() >= len(names):
        row = PLACES.one(int(codes.argmax()))
        raise DataError(f"{labels}: {row} has label {codes.max()}, outside 0…{len(names) - 1}.")
    return Dataset(
        name=Path(images).name,
        inputs=torch.from_numpy(pixels[:, None]),
        labels=torch.from_numpy(codes.astype(np.int64)),
        classes=names,
        rows=PLACES,
    )


def read_idx_array(path: str | Path, *, dimensions: int) -> npt.NDArray[np.uint8]:
    """Return the content of one IDX file as an array of its shape."""
    path = existing_file(path)
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    try:
        with path.open("rb") as file:
            return _parse(gzip.GzipFile(fileobj=file) if zipped else file, dimensions, path)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path} is damaged or truncated ({error}); download it again.") from error


def _parse(stream: IO[bytes] | gzip.GzipFile, dimensions: int, path: Path) -> npt.NDArray[np.uint8]:
    magic = stream.read(4)
    if magic != bytes([0, 0, _UNSIGNED_BYTES, dimensions]):
        raise DataError(
            f"{path} starts with {magic.hex(' ')}, but IDX bytes in {dimensions} dimensions start with "
            f"00 00 08 {dimensions:02x}. Are images and labels swapped, or is it another kind of file?"
        )
    header = stream.read(4 * dimensions)
    if len(header) < 4 * dimensions:
        raise DataError(f"{path} is truncated: it ends inside its header.")
    shape = struct.unpack(f">{dimensions}I", header)
    size = math.prod(shape)
    if size > _LARGEST:
        raise DataError(f"{path} claims the shape {shape}, more than {_LARGEST:,} bytes; its header is damaged.")
    content = bytearray(stream.read(size))
    if len(content) < size:
        raise DataError(f"{path} is truncated: {len(content):,} of {size:,} bytes for the shape {shape}.")
    if stream.read(1):
        raise DataError(f"{path} goes on after the {size:,} bytes of its shape {shape}; its header is damaged.")
    return np.frombuffer(content, np.uint8).reshape(shape)
