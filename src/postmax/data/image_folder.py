"""Read a folder of images with one subfolder for each class."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from postmax.data.dataset import Dataset, RowSource
from postmax.data.files import existing_folder
from postmax.data.image_files import ImageFiles, read_image, unreadable
from postmax.errors import DataError
from postmax.row_names import RowNames

_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"})
_LITTER = frozenset({"thumbs.db", "desktop.ini", "__macosx"})
_FITS_IN_MEMORY = 512 << 20
_SHOWN = 5


def read_image_folder(
    path: str | Path,
    *,
    size: int | None = None,
    in_memory: bool | None = None,
    threads: int | None = None,
) -> Dataset:
    """Return the images of a folder whose subfolders are the classes.

    Hidden files and files of the operating system (`Thumbs.db`, `desktop.ini`) are ignored. Subfolders of a class
    belong to the class. Files that cannot be read as an image are skipped; the `notes` of the result name them.

    Args:
        path: The folder.
        size: Make every image size × size: the shorter side is scaled, and the middle is cut out. It is needed if the
            images have different sizes.
        in_memory: Whether to decode all images now, which also finds all damaged files now. By default images are
            decoded now if they take at most half a gigabyte. Of larger folders only the beginning of each file is
            looked at, so an image that is cut off later is an error when it is its turn.
        threads: The number of images that are decoded at once.

    Raises:
        DataError: If there are no classes, a class has no images that can be read, or a file in it has a name that is
            not that of an image.
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
    found = _Readable([image for images in files for image in images], size, threads)
    in_memory = found.fits_in_memory() if in_memory is None else in_memory
    inputs: Tensor | RowSource = found.decoded() if in_memory else found.opened()
    place = {image: code for code, images in enumerate(files) for image in images}
    labels = torch.tensor([place[path] for path in found.paths])
    _check_left(folder, classes, labels, found)
    names = [str(path.relative_to(folder)) for path in found.paths]
    return Dataset(
        name=folder.name,
        inputs=inputs,
        labels=labels,
        classes=tuple(entry.name for entry in classes),
        notes=found.notes(folder),
        rows=RowNames("file", names),
    )


class _Readable:
    """Image files, of which those that cannot be read are left out as soon as that is noticed."""

    def __init__(self, paths: list[Path], size: int | None, threads: int | None) -> None:
        self.paths = paths
        self.skipped: dict[Path, str] = {}
        self._size, self._threads = size, threads

    def fits_in_memory(self) -> bool:
        """Return whether all images together take little memory when they are decoded."""
        pixels = self._size**2 if self._size else self._pixels_of_first()
        return 3 * pixels * len(self.paths) <= _FITS_IN_MEMORY

    def decoded(self) -> Tensor:
        """Return all images that can be decoded."""
        try:
            return _in_memory(self._rows)
        except DataError:  # an image is damaged, or they have different sizes
            self._leave_out(unreadable(self.paths, size=self._size, threads=self._threads, whole=True))
            return _in_memory(self._rows) if self.paths else torch.zeros(0, 3, 1, 1, dtype=torch.uint8)

    def opened(self) -> ImageFiles:
        """Return the images that begin as an image does."""
        self._leave_out(unreadable(self.paths, size=self._size, threads=self._threads, whole=False))
        return self._rows

    def notes(self, folder: Path) -> tuple[str, ...]:
        """Return a note that names the files that were left out."""
        if not self.skipped:
            return ()
        names = [str(path.relative_to(folder)) for path in self.skipped]
        shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
        one = len(names) == 1
        what = f"{'it is' if one else 'they are'} damaged, truncated or no image{'' if one else 's'}"
        of = len(names) + len(self.paths)
        return (f"{len(names)} of {of} images cannot be read and {'is' if one else 'are'} skipped: {shown} ({what})",)

    @property
    def _rows(self) -> ImageFiles:
        return ImageFiles(self.paths, size=self._size, threads=self._threads)

    def _leave_out(self, wrong: Mapping[Path, str]) -> None:
        self.skipped.update(wrong)
        self.paths = [path for path in self.paths if path not in wrong]

    def _pixels_of_first(self) -> int:
        for path in self.paths:
            try:
                return read_image(path).size // 3
            except DataError:  # it is left out later, with all others like it
                continue
        return 0


def _check_left(folder: Path, classes: Sequence[Path], labels: Tensor, found: _Readable) -> None:
    """Check that each class has images left."""
    counts = torch.bincount(labels, minlength=len(classes)) if len(labels) else torch.zeros(len(classes))
    reason = next(iter(found.skipped.values()), "")
    if not len(labels):
        raise DataError(f"{folder}: none of its {len(found.skipped)} images can be read. {reason}")
    for entry, count in zip(classes, counts.tolist(), strict=True):
        if not count:
            reason = next(reason for path, reason in found.skipped.items() if entry in path.parents)
            raise DataError(f"{entry}: none of its images can be read. Remove the folder, or replace them. {reason}")


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


def _in_memory(rows: RowSource, chunk: int = 256) -> Tensor:
    return torch.cat([rows[index] for index in torch.arange(len(rows)).tensor_split(max(1, len(rows) // chunk))])
