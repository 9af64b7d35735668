"""Data in memory as detectors see them: data sets, data frames, arrays."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.checking.examined import Codes, Examined, counted
from postmax.checking.hashing import row_hashes
from postmax.data.dataset import Dataset
from postmax.data.frames import columns_of_frame, is_frame
from postmax.data.number_text import numbers
from postmax.data.table_encoder import CategoryColumn
from postmax.data.table_reading import TableReading
from postmax.errors import InputError
from postmax.labels import encode_labels

# More numbers than this are not looked at: 100 000 rows of 50 columns, or fewer rows of more columns.
MOST_CELLS, MOST_ROWS, FEWEST_ROWS = 6_000_000, 100_000, 2_000
_MOST_IMAGES = 5_000


def of_dataset(dataset: Dataset) -> Examined:
    """Return a data set, whose features are turned back into the columns that they come from."""
    codes = dataset.labels.numpy().astype(np.int64)
    are_images = dataset.inputs[torch.tensor([0])].dtype == torch.uint8
    chosen = _evenly(len(codes), _MOST_IMAGES) if are_images else _chosen(dataset.inputs, len(codes))
    inputs = dataset.inputs[torch.from_numpy(chosen)]
    columns: dict[str, npt.NDArray[Any]] = {}
    if not are_images:
        features = inputs.double().numpy()
        columns = _plain_columns(features) if dataset.table is None else _decoded(dataset.table, features)
    return Examined(
        dataset.name,
        columns,
        codes[chosen],
        dataset.classes,
        places=chosen,
        total=len(codes),
        counts=counted(codes, dataset.classes),
        label=None if dataset.table is None else dataset.table.label,
        rows=dataset.rows.of(chosen.tolist()),
        named=dataset.table is not None,
        dropped=() if dataset.table is None else dataset.table.dropped,
        images=inputs if are_images else None,
    )


def of_arrays(rows: Any, labels: Any, *, leave: Collection[str] = (), name: str = "the data") -> Examined:
    """Return rows and labels as they are in a program: an array, a tensor, a list of rows or a data frame.

    Args:
        rows: The rows.
        labels: One label for each row.
        leave: Columns of a data frame that are not features.
        name: What messages call the data.

    Raises:
        InputError: If there is not one label for each row, or if rows are neither numbers nor text.
    """
    encoded = encode_labels(_plain(labels))
    codes, classes = encoded.codes.numpy(), tuple(map(str, encoded.classes))
    if is_frame(rows):
        names, values_of = columns_of_frame(rows)
        columns, named = {column: as_column(values_of(column)) for column in names if column not in leave}, True
        count = len(next(iter(columns.values()))) if columns else 0
    else:
        array = rows.detach().cpu().numpy() if isinstance(rows, Tensor) else np.asarray(_plain(rows))
        if array.ndim > 2 and array.dtype == np.uint8:
            _check_count(len(array), len(codes))
            return of_dataset(Dataset(name, torch.from_numpy(channels_first(array)), encoded.codes, classes))
        if array.ndim != 2:
            raise InputError(f"{name}: rows are an array (N, d) or a data frame, not an array of shape {array.shape}.")
        if array.dtype.kind not in "fiubO":
            raise InputError(f"{name}: rows are numbers, not {array.dtype}. Rows with text need the names of columns.")
        columns, named, count = {f"{i}": as_column(array[:, i]) for i in range(array.shape[1])}, False, len(array)
    _check_count(count, len(codes))
    every = np.arange(count)
    counts = counted(codes, classes)
    found = Examined(name, columns, codes, classes, places=every, total=count, counts=counts, named=named)
    most = most_rows(len(columns))
    return found if count <= most else found.subset(lowest(found.hashes, most))


def most_rows(columns: int) -> int:
    """Return how many rows with so many columns are looked at."""
    return max(FEWEST_ROWS, min(MOST_ROWS, MOST_CELLS // max(1, columns)))


def lowest(hashes: npt.NDArray[np.uint64], most: int) -> Codes:
    """Return the places of the rows with the lowest numbers, in their order. So copies are chosen together."""
    limit = np.partition(hashes, most - 1)[most - 1]
    chosen: Codes = np.flatnonzero(hashes <= limit)
    return chosen if len(chosen) <= 2 * most else chosen[:most]  # so many copies of one row are enough


def as_column(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return values as float64 if all of them are numbers or missing; else as text, with None for missing ones."""
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    texts = np.array([None if _is_nothing(v) else v if isinstance(v, str) else str(v) for v in values], dtype=object)
    found = numbers(texts)
    return texts if found is None else found


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _plain(values: Any) -> Any:
    return values.to_numpy() if hasattr(values, "to_numpy") else values


def _check_count(rows: int, labels: int) -> None:
    if rows != labels:
        raise InputError(f"there are {rows} rows, but {labels} labels. Give one label for each row.")


def channels_first(images: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return images (N, H, W), (N, H, W, C) or (N, C, H, W) as (N, C, H, W)."""
    if images.ndim == 3:
        return images[:, None]
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)) if images.shape[1] not in (1, 3) else images


def _evenly(count: int, most: int) -> Codes:
    """Return places that are spread evenly over all rows."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).round().astype(np.int64)


def _chosen(inputs: Any, count: int) -> Codes:
    """Return the rows of features that are looked at."""
    width = inputs[torch.tensor([0])].shape[1]
    most = most_rows(width)
    if count <= most:
        return np.arange(count)
    parts = torch.arange(count).split(FEWEST_ROWS)
    hashes = [row_hashes(list(inputs[part].numpy().T), len(part)) for part in parts]
    return lowest(np.concatenate(hashes), most)


def _plain_columns(features: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[Any]]:
    return {f"{place}": values for place, values in enumerate(features.T)}


def _decoded(table: TableReading, features: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[Any]]:
    """Return the columns that features of a table were made from."""
    found: dict[str, npt.NDArray[Any]] = {}
    start = 0
    for column in table.encoder.columns:
        mine = features[:, start : start + len(column.features)]
        start += len(column.features)
        if isinstance(column, CategoryColumn):
            names = np.array([category or None for category in column.categories], dtype=object)
            found[column.name] = names[mine.argmax(1)]
        else:
            found[column.name] = mine[:, 0]
    return found
