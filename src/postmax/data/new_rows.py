"""Rows without labels, for a model that is trained: from files, folders of images, data frames and arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from postmax.data.array_rows import array_blocks, as_rows
from postmax.data.dataset import Dataset
from postmax.data.frames import is_frame
from postmax.data.image_files import ImageFiles
from postmax.data.image_folder import all_images
from postmax.data.own import is_idx, is_table
from postmax.data.reading import refuse_idle_for_file
from postmax.data.row_form import NewReading, NewRows, OpenRows, RowForm
from postmax.data.table_rows import open_table, rows_of_frame
from postmax.errors import DataError, InputError
from postmax.files import existing_file
from postmax.row_names import INDICES, RowNames
from postmax.wording import advice

# Images are decoded as they are needed; they take more memory than features.
ROWS_AT_ONCE, _IMAGES_AT_ONCE = 10_000, 500
_FORMATS = "CSV, Parquet and Arrow tables, .npz and .npy arrays, IDX images, and folders of images"


def open_rows(source: Any, form: RowForm, reading: NewReading) -> OpenRows:
    """Return the rows of a file, a folder of images, a data set, a data frame, an array or a tensor.

    Args:
        source: Where the rows are.
        form: What the rows of the model are.
        reading: How the rows are read.

    Raises:
        DataError: If the source cannot be read, or if its rows are not those of the model. An error about a row in the
            middle of a file comes when its block is taken.
        InputError: If an option has no meaning for such rows.

    Example:
        >>> rows = open_rows([[1, 2], [3, 4]], RowForm(shape=(2,)), NewReading())
        >>> [block.inputs for block in rows.blocks]
        [tensor([[1., 2.],
                [3., 4.]])]
    """
    if isinstance(source, str | Path):
        return _open_path(Path(source).expanduser(), form, reading)
    if reading.keep:
        raise InputError("keep is for columns of files: a program has its columns already.")
    if isinstance(source, Dataset):
        return OpenRows(_dataset_blocks(source, form, reading))
    if is_frame(source):
        return OpenRows(iter([rows_of_frame(source, form, reading)]))
    values = source.detach().cpu().numpy() if isinstance(source, Tensor) else np.asarray(source)
    return OpenRows(iter([NewRows(as_rows(values, form.shape, form.fills(reading), "the rows"), INDICES)]))


def _open_path(path: Path, form: RowForm, reading: NewReading) -> OpenRows:
    if not path.is_dir() and is_table(existing_file(path)):
        return open_table(path, form, reading, ROWS_AT_ONCE)
    if reading.keep:
        option = advice(python="keep", command="--keep")
        raise InputError(f"{path}: {option} names columns of a table, and this is none.")
    if path.is_dir():
        refuse_idle_for_file(path, reading.given)
        return OpenRows(_image_blocks(path, form))
    if path.suffix.lower() in (".npz", ".npy") or is_idx(path):
        refuse_idle_for_file(path, replace(reading.given, missing="error"))
        blocks = array_blocks(path, form.shape, form.fills(reading), ROWS_AT_ONCE)
        return OpenRows(NewRows(inputs, rows) for inputs, rows in blocks)
    raise DataError(f"{path} has an unknown format. Rows are read from {_FORMATS}.")


def _dataset_blocks(rows: Dataset, form: RowForm, reading: NewReading) -> Iterator[NewRows]:
    """Yield the rows of a data set, which may be on disk. Its labels are not used."""
    for index in torch.arange(len(rows)).split(_IMAGES_AT_ONCE):
        names = RowNames("index", index.tolist())
        inputs = as_rows(rows.inputs[index].cpu().numpy(), form.shape, form.fills(reading), rows.name, names)
        yield NewRows(inputs, names)


def _image_blocks(folder: Path, form: RowForm) -> Iterator[NewRows]:
    """Yield the images of a folder and of its subfolders, in the order of their paths."""
    if not form.are_images:
        raise DataError(f"{folder} is a folder of images, but the model was trained on {form}.")
    paths = all_images(folder)
    if not paths:
        raise DataError(f"{folder} has no images.")
    images = ImageFiles(paths, size=form.size)
    for rows in torch.arange(len(paths)).split(_IMAGES_AT_ONCE):
        names = RowNames("place", [row + 1 for row in rows.tolist()])
        files = [str(paths[row].relative_to(folder)) for row in rows.tolist()]
        yield NewRows(_of_form(images, rows, form), names, {"file": files})


def _of_form(images: ImageFiles, rows: Tensor, form: RowForm) -> Tensor:
    """Return some images, or name the first one that is not like those of the training."""
    try:
        found = images[rows]
        if tuple(found.shape[1:]) == form.shape:
            return found
    except DataError:  # one of them is damaged, or they are not all of one size
        pass
    for row in rows:
        shape = tuple(images[row[None]].shape[1:])
        if shape != form.shape:
            raise DataError(f"{images.paths[int(row)]}: the model was trained on {form}, and this is {_one(shape)}.")
    raise DataError(f"{images.paths[int(rows[0])]} changed while it was read.")


def _one(shape: tuple[int, ...]) -> str:
    return f"an image of {shape[1]} × {shape[2]} pixels with {shape[0]} channel{'s' * (shape[0] > 1)}"
