"""Rows of arrays without labels: `.npz`, `.npy` and IDX files, read block by block, and arrays in memory."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.data.arrays import as_inputs, input_key
from postmax.data.idx import read_idx_array
from postmax.data.problems import Problems
from postmax.errors import DataError
from postmax.row_names import INDICES, RowNames
from postmax.wording import advice


def array_blocks(
    path: Path, shape: tuple[int, ...], fills: bool, rows_at_once: int
) -> Iterator[tuple[Tensor, RowNames]]:
    """Yield the rows of a file of arrays, as `as_rows` returns them, with their names.

    An array in C order is read piece by piece.

    Raises:
        DataError: If the file is damaged, has no such array, or holds other rows.
    """
    start = 0
    for values in _blocks(path, rows_at_once):
        rows = RowNames("place", range(start + 1, start + len(values) + 1))
        yield as_rows(values, shape, fills, str(path), rows), rows
        start += len(values)
    if not start:
        raise DataError(f"{path}: it has no rows.")


def as_rows(
    values: npt.NDArray[Any], shape: tuple[int, ...], fills: bool, where: str, rows: RowNames = INDICES
) -> Tensor:
    """Return an array as float32 features (N, d) or uint8 images (N, C, H, W).

    Args:
        values: The array.
        shape: The shape of one row.
        fills: Whether missing features will be filled in, so that NaN may stay.
        where: The name of the array in error messages.
        rows: How error messages call the rows.

    Raises:
        DataError: If the array has another shape, or a feature is missing or infinite.

    Example:
        >>> as_rows(np.array([[1, 2]]), (2,), False, "x")
        tensor([[1., 2.]])
        >>> as_rows(np.array([1, 2]), (2,), False, "x")
        Traceback (most recent call last):
        ...
        postmax.errors.DataError: x: the shape (2,) is that of one row: write rows[None], or [[…]] for a list.
    """
    if len(shape) == 1 and values.shape == shape:
        raise DataError(f"{where}: the shape {values.shape} is that of one row: write rows[None], or [[…]] for a list.")
    if len(shape) == 1 and values.ndim == 2 and values.dtype.kind == "O":
        values = _as_numbers(values, where)
    if fills and values.ndim == 2 and values.dtype.kind == "f":
        absent = np.isnan(values)
        found = as_inputs(np.where(absent, 0, values), where, rows)
        found[torch.from_numpy(absent)] = torch.nan
    else:
        try:
            found = as_inputs(values, where, rows)
        except DataError as error:
            if len(shape) != 1 or values.ndim != 2 or values.dtype.kind != "f" or not np.isnan(values).any():
                raise
            option = advice(python='missing="median"', command="--missing median")
            raise DataError(f"{error} Or fill in the medians of the training rows: {option}.") from None
    if tuple(found.shape[1:]) != shape:
        raise DataError(
            f"{where}: each row has the shape {tuple(found.shape[1:])}, but the model was trained on {shape}."
        )
    return found


def _as_numbers(values: npt.NDArray[Any], where: str) -> npt.NDArray[np.float64]:
    try:
        return np.array([[np.nan if cell is None else cell for cell in row] for row in values.tolist()], np.float64)
    except (ValueError, TypeError) as error:
        raise DataError(f"{where}: features are numbers ({error}). Rows with text need the names of columns.") from None


def _blocks(path: Path, rows_at_once: int) -> Iterator[npt.NDArray[Any]]:
    if path.suffix.lower() == ".npz":
        yield from _npz_blocks(path, rows_at_once)
        return
    if path.suffix.lower() == ".npy":
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise DataError(f"{path} is not a complete .npy file of numbers ({error}).") from error
    else:
        array = read_idx_array(path, dimensions=3)
    for start in range(0, len(array), rows_at_once):
        yield np.array(array[start : start + rows_at_once])


def _npz_blocks(path: Path, rows_at_once: int) -> Iterator[npt.NDArray[Any]]:
    with Problems(path) as problems:
        key = input_key(path, problems)
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{key}.npy") as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, in_columns, dtype = read(stream)
            if in_columns and len(shape) > 1:  # the first row is spread over the whole file
                yield from _parts(_take(stream, shape[::-1], dtype).transpose(), rows_at_once)
                return
            for start in range(0, shape[0], rows_at_once):
                yield _take(stream, (min(rows_at_once, shape[0] - start), *shape[1:]), dtype)
    except DataError:
        raise
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged or truncated ({error}).") from error


def _parts(array: npt.NDArray[Any], rows_at_once: int) -> Iterator[npt.NDArray[Any]]:
    for start in range(0, len(array), rows_at_once):
        yield array[start : start + rows_at_once]


def _take(stream: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the next array of this shape from a stream of raw numbers."""
    size = math.prod(shape) * dtype.itemsize
    content = bytearray(stream.read(size))
    if len(content) < size:
        raise EOFError(f"it ends {size - len(content):,} bytes too early")
    return np.frombuffer(content, dtype).reshape(shape)
