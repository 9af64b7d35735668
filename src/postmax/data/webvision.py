"""WebVision 1.0 in its official layout: images from web searches for the classes of ImageNet.

`webvision-mini` is what most papers train on: the first 50 classes, with the images from Google.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path, PurePosixPath

import torch

from postmax.data.augment import Augment
from postmax.data.catalogue import Request, register
from postmax.data.dataset import Dataset
from postmax.data.image_files import ImageFiles, check_all_exist
from postmax.data.normalisation import STATISTICS
from postmax.data.synsets import MINI_CLASSES, SYNSETS, of_webvision, read_lines, read_synsets, webvision_folder
from postmax.errors import DataError

IMAGE_SIZE = 256
# What the literature does with these images in training: a random window of 224 pixels, a random flip.
AUGMENT = Augment(padding=0, crop=224)
_ARCHIVES = {
    "google": of_webvision("google_resized_256.tar", "google"),
    "flickr": of_webvision("flickr_resized_256.tar", "flickr"),
    "val": of_webvision("val_images_256.tar", "val_images_256"),
}
_TRAIN_LISTS = {
    "webvision-mini": ("train_filelist_google.txt",),
    "webvision": ("train_filelist_google.txt", "train_filelist_flickr.txt"),
}
# There are fifty validation images for each class. Sources differ in the number of training images, so it is not
# checked.
_ROWS = {("webvision-mini", "test"): 2_500, ("webvision", "test"): 50_000}


def read_webvision(name: str, num_classes: int | None, request: Request) -> Dataset:
    """Return the images of the official lists, 256 × 256, which are read from disk when they are needed.

    Raises:
        DataError: If a list or an image is missing, or a line of a list is malformed.
    """
    folder = webvision_folder(request)
    synsets = read_synsets(folder / "info" / "synsets.txt")
    if request.split == "train":
        lists, images = _TRAIN_LISTS[name], folder
    else:
        lists, images = ("val_filelist.txt",), folder / "val_images_256"
    rows = [row for file in lists for row in _read_list(folder / "info" / file, len(synsets.ids))]
    chosen = synsets.first(num_classes)
    rows = [(path, label) for path, label in rows if label < len(chosen.ids)]
    expected = _ROWS.get((name, request.split), len(rows))
    if len(rows) != expected:
        raise DataError(f"{folder / 'info' / lists[0]} names {len(rows)} images for {name}, it should name {expected}.")
    paths = [images / path for path, _ in rows]
    check_all_exist(paths)
    return Dataset(
        name=name,
        inputs=ImageFiles(paths, size=IMAGE_SIZE),
        labels=torch.tensor([label for _, label in rows], dtype=torch.int64),
        classes=chosen.names,
        statistics=STATISTICS["imagenet"],
    )


def _read_list(path: Path, num_classes: int) -> list[tuple[str, int]]:
    """Return the rows of a list, whose lines are like `google/q0001/abc.jpg 0`."""
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        image, _, label = line.strip().rpartition(" ")
        if not (image and label.isdecimal() and int(label) < num_classes):
            raise DataError(f"{path}: line {number} must be a file and a class below {num_classes}: {line[:60]!r}.")
        if PurePosixPath(image).is_absolute() or ".." in PurePosixPath(image).parts:
            raise DataError(f"{path}: line {number} leads out of the folder: {image!r}.")
        rows.append((image, int(label)))
    return rows


for _name, _classes, _sources in (
    ("webvision-mini", MINI_CLASSES, ("google", "val")),
    ("webvision", None, ("google", "flickr", "val")),
):
    register(
        _name,
        partial(read_webvision, _name, _classes),
        clean=False,
        augment=AUGMENT,
        files=[SYNSETS, *(_ARCHIVES[source] for source in _sources)],
    )
