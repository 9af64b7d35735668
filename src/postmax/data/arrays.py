"""Read arrays that numpy saved: `.npz` files, and `.npy` files that stay on disk."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.data.dataset import Dataset
from postmax.data.problems import Problems
from postmax.errors import DataError
from postmax.files import existing_file
from postmax.labels import encode_labels
from postmax.row_names import PLACES, RowNames
from postmax.wording import advice

_KEYS = {
    "inputs": ("x", "inputs", "features", "images", "data"),
    "labels": ("y", "labels", "label", "targets", "target"),
}
_LARGEST = 16 << 30
_CHANNELS = (1, 3)


def read_npz(
    path: str | Path, *, inputs: str | None = None, labels: str | None = None, max_bytes: int = _LARGEST
) -> Dataset:
    """Return inputs and labels from an `.npz` file.

    An array of two dimensions holds features. A uint8 array of three or four dimensions holds images: (N, H, W),
    (N, H, W, C) or (N, C, H, W), with one or three channels.

    Args:
        path: The file.
        inputs: The name of the array of inputs; by default x, inputs, features, images or data, in upper or lower case.
        labels: The name of the array of labels; by default y, labels, label, targets or target.
        max_bytes: The largest size that the file may have when it is unpacked.

    Raises:
        DataError: If the file is damaged, holds Python objects, or it is not clear which array is which.
    """
    path = existing_file(path)
    shapes = _shapes(path, max_bytes)
    with Problems(path) as problems:
        x, y = _key(inputs, "inputs", shapes, problems), _key(labels, "labels", shapes, problems)
    try:
        with np.load(path, allow_pickle=False) as archive:
            rows, values = archive[x], archive[y]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged or truncated ({error}).") from error
    encoded = encode_labels(values, where=f"{path}: {y}", rows=PLACES)
    if len(rows) != len(encoded.codes):
        raise DataError(
            f"{path}: {x} has {len(rows)} rows but {len(encoded.codes)} labels are in {y}. Save both again."
        )
    return Dataset(
        name=path.stem,
        inputs=as_inputs(rows, f"{path}: {x}"),
        labels=encoded.codes,
        classes=tuple(map(str, encoded.classes)),
        rows=PLACES,
    )


def input_key(path: Path, problems: Problems, inputs: str | None = None) -> str:
    """Return the name of the array of inputs in an `.npz` file, whose labels are not needed.

    Raises:
        DataError: If the file is damaged. If it is not clear which array holds the inputs, that is noted.
    """
    shapes = _shapes(path, _LARGEST)
    if inputs is None and len(shapes) == 1:
        return next(iter(shapes))
    return _key(inputs, "inputs", shapes, problems)


def as_inputs(array: npt.NDArray[Any], where: str, rows: RowNames = PLACES) -> Tensor:
    """Return an array as uint8 images (N, C, H, W) or float32 features (N, d).

    Args:
        array: One row for each example.
        where: The name of the array in error messages.
        rows: How error messages call the rows.

    Raises:
        DataError: If it is neither, or if a feature is missing or infinite.

    Example:
        >>> as_inputs(np.zeros((5, 28, 28), np.uint8), "x").shape
        torch.Size([5, 1, 28, 28])
    """
    if array.ndim == 2 and not array.shape[1]:
        raise DataError(f"{where}: the shape {array.shape} says that there are no features.")
    if array.ndim == 2 and array.dtype.kind in "fiub":
        features = array.astype(np.float32)
        bad = np.flatnonzero(~np.isfinite(features).all(1))
        if len(bad):
            column = int(np.isfinite(features[bad[0]]).argmin())
            many = f" ({len(bad)} such rows: {rows.some(bad)})" if len(bad) > 1 else ""
            raise DataError(
                f"{where}: {rows.one(int(bad[0]))} is {array[bad[0], column]} at index {column}{many}. "
                "Fill it in, or drop the row."
            )
        return torch.from_numpy(features)
    if array.dtype != np.uint8:
        raise DataError(
            f"{where}: {array.dtype} of shape {array.shape} is neither features (N, d) nor images. Images must be "
            "uint8; for floats in 0…1 that is (x * 255).round().astype('uint8')."
        )
    if array.ndim == 3:
        array = array[:, None]
    elif array.ndim == 4 and array.shape[1] not in _CHANNELS and array.shape[3] in _CHANNELS:
        array = array.transpose(0, 3, 1, 2)
    if array.ndim != 4 or array.shape[1] not in _CHANNELS:
        raise DataError(f"{where}: shape {array.shape} is not that of images with one or three channels.")
    return torch.from_numpy(np.ascontiguousarray(array))


class MappedArray:
    """The rows of an `.npy` file, which are read from disk when they are needed.

    Raises:
        DataError: If the file is truncated, not `.npy`, or holds neither images nor features.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = existing_file(path)
        try:
            self._array: npt.NDArray[Any] = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise DataError(f"{self.path} is not a complete .npy file of numbers ({error}).") from error
        if not isinstance(self._array, np.memmap) or self._array.ndim < 2:
            raise DataError(f"{self.path} must be an .npy file with one row for each example.")
        as_inputs(np.array(self._array[:1]), str(self.path))

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: Tensor, /) -> Tensor:
        return as_inputs(np.array(self._array[index.numpy()]), str(self.path), RowNames("place", (index + 1).tolist()))


def _key(given: str | None, what: str, shapes: Mapping[str, object], problems: Problems) -> str:
    """Return the array of the inputs or of the labels. If it is not clear, that is noted."""
    listing = ", ".join(f"{key} {shape}" for key, shape in shapes.items())
    if given is not None:
        if given not in shapes:
            problems.add(f"there is no array {given!r}; it has {listing}.")
        return given
    found = [key for key in shapes if key.lower() in _KEYS[what]]
    if len(found) != 1:
        # No command has an option for the array of the inputs.
        command = "Say --label NAME." if what == "labels" else "Call it x, and no other array so."
        say = advice(python=f"Say {what}='…'.", command=command)
        problems.add(f"which array holds the {what}? It has {listing}. {say}")
    return found[0] if found else ""


def _shapes(path: Path, max_bytes: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of every array, from the headers, and check that each array has as many bytes as it says."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
            _check_total(sum(info.file_size for info in members), max_bytes, path)
            return {info.filename.removesuffix(".npy"): _shape(archive, info, path) for info in members}
    except DataError:
        raise
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, RuntimeError) as error:
        raise DataError(f"{path} is not a complete .npz file ({error}).") from error


def _check_total(total: int, max_bytes: int, path: Path) -> None:
    if total > max_bytes:
        raise DataError(f"{path} would unpack to {total:,} bytes, more than the {max_bytes:,} allowed.")


def _shape(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> tuple[int, ...]:
    with archive.open(info) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        if dtype.hasobject:
            raise DataError(f"{path}: {info.filename} holds Python objects, which could run code; it is refused.")
        if stream.tell() + math.prod(shape) * dtype.itemsize != info.file_size:
            raise DataError(f"{path}: {info.filename} does not have the bytes of its shape {shape}; it is damaged.")
    return tuple(int(n) for n in shape)
