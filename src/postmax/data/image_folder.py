"""Read a folder of images with one subfolder for each class."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from postmax.data.dataset import Dataset, RowSource
from postmax.data.files import existing_folder
from postmax.data.image_files import ImageFiles, read_image
from postmax.errors import DataError

_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"})
_LITTER = frozenset({"thumbs.db", "desktop.ini", "__macosx"})
_FITS_IN_MEMORY = 512 << 20


def read_image_folder(
    path: str | Path,
    *,
    size: int | None = None,
    in_memory: bool | None = None,
    threads: int | None = None,
) -> Dataset:
    """Return the images of a folder whose subfolders are the classes.

    Hidden files and files of the operating system (`Thumbs.db`, `desktop.ini`) are ignored. Subfolders of a class
    belong to the class.

    Args:
        path: The folder.
        size: Make every image size × size: the shorter side is scaled, and the middle is cut out. It is needed if the
            images have different sizes.
        in_memory: Whether to decode all images now, which also finds all damaged files now. By default images are
            decoded now if they take at most half a gigabyte.
        threads: The number of images that are decoded at once.

    Raises:
        DataError: If there are no classes, a class has no images, or a file in it is not an image.
    """
    folder = existing_folder(path).resolve()
    # Sorted by name: on some systems paths are compared without regard to case, and class indices must not be.
    classes = sorted((e for e in folder.iterdir() if e.is_dir() and not _is_litter(e.name)), key=lambda e: e.name)
    if not classes:
        raise DataError(f"{folder} has no subfolders; put the images of each class into a folder of its own.")
    stray = next((e for e in sorted(folder.iterdir()) if e.is_file() and _is_image(e)), None)
    if stray is not None:
        raise DataError(f"{stray} lies beside the class folders, so it has no class. Move it into one of them.")
    files = [list(_images(entry)) for entry in classes]
    for entry, images in zip(classes, files, strict=True):
        if not images:
            raise DataError(f"{entry} has no images. Remove the folder, or add images to the class.")
    paths = [image for images in files for image in images]
    rows = ImageFiles(paths, size=size, threads=threads)
    return Dataset(
        name=folder.name,
        inputs=_in_memory(rows) if _wanted(rows, in_memory) else rows,
        labels=torch.repeat_interleave(torch.arange(len(classes)), torch.tensor([len(f) for f in files])),
        classes=tuple(entry.name for entry in classes),
    )


def all_images(folder: Path) -> list[Path]:
    """Return all images in a folder and in its subfolders, for rows without labels.

    Raises:
        DataError: If a file is neither an image nor hidden.
    """
    return list(_images(folder))


def _images(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if _is_litter(entry.name):
            continue
        if entry.is_dir():
            yield from _images(entry)
        elif _is_image(entry):
            yield entry
        else:
            known = " ".join(sorted(_SUFFIXES))
            raise DataError(f"{entry} is not an image of a known format ({known}). Convert it, or move it elsewhere.")


def _is_litter(name: str) -> bool:
    return name.startswith(".") or name.lower() in _LITTER


def _is_image(path: Path) -> bool:
    return not _is_litter(path.name) and os.path.splitext(path.name)[1].lower() in _SUFFIXES  # noqa: PTH122  (fast)


def _wanted(rows: ImageFiles, in_memory: bool | None) -> bool:
    if in_memory is not None:
        return in_memory
    pixels = rows.size**2 if rows.size else read_image(rows.paths[0]).size // 3
    return 3 * pixels * len(rows) <= _FITS_IN_MEMORY


def _in_memory(rows: RowSource, chunk: int = 256) -> Tensor:
    return torch.cat([rows[index] for index in torch.arange(len(rows)).tensor_split(max(1, len(rows) // chunk))])
