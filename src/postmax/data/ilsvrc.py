"""The validation images of ILSVRC12 (ImageNet) with the class indices of WebVision: a test set for WebVision.

Two layouts are read: one folder for each WordNet id, or the flat official folder with the labels of the development kit
("devkit"). The devkit numbers the classes 1…1000 in its own order, which is in its `meta.mat`. The classes are matched
by their WordNet ids.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch

from postmax.data.catalogue import Request, register
from postmax.data.dataset import Dataset
from postmax.data.files import existing_folder, first_existing
from postmax.data.image_files import ImageFiles, check_all_exist
from postmax.data.normalisation import STATISTICS
from postmax.data.request import Needed
from postmax.data.synsets import MINI_CLASSES, SYNSETS, Synsets, read_lines, read_synsets, webvision_folder
from postmax.data.webvision import AUGMENT, IMAGE_SIZE
from postmax.errors import DataError
from postmax.extras import need
from postmax.files import existing_file

_PER_CLASS = 50
_IMAGES = Needed(
    ("ilsvrc12/val",),
    "Unpack ILSVRC2012_img_val.tar (image-net.org, after registration; MD5 29b22e2961454d5413ddabcf34fc5622) as that "
    "folder. If it has no folder for each class, unpack ILSVRC2012_devkit_t12.tar.gz (MD5 "
    "fa75699e90414af021442c21a62c3abf) beside it.",
)
_LABELS = "ILSVRC2012_validation_ground_truth.txt"


def read_ilsvrc(name: str, num_classes: int | None, request: Request) -> Dataset:
    """Return the validation images, 256 × 256, which are read from disk when they are needed.

    Raises:
        DataError: If the images, their labels or WebVision's class list are missing or malformed.
    """
    synsets = read_synsets(webvision_folder(request) / "info" / "synsets.txt").first(num_classes)
    folder = request.root / "ilsvrc12"
    images = existing_folder(request.find(_IMAGES))
    by_class = any(entry.is_dir() for entry in images.iterdir())
    rows = _from_class_folders(images, synsets) if by_class else _from_devkit(images, folder, synsets, request)
    if len(rows) != _PER_CLASS * len(synsets.ids):
        raise DataError(
            f"{images}: {len(rows)} images belong to the {len(synsets.ids)} classes of {name}, it should be "
            f"{_PER_CLASS} for each. Is the folder or the list of labels cut short?"
        )
    return Dataset(
        name=name,
        inputs=ImageFiles([path for path, _ in rows], size=IMAGE_SIZE),
        labels=torch.tensor([label for _, label in rows], dtype=torch.int64),
        classes=synsets.names,
        statistics=STATISTICS["imagenet"],
    )


def _from_class_folders(images: Path, synsets: Synsets) -> list[tuple[Path, int]]:
    rows = []
    for label, wnid in enumerate(synsets.ids):
        files = sorted(path for path in existing_folder(images / wnid).iterdir() if not path.name.startswith("."))
        if not files:
            raise DataError(f"{images / wnid} has no images.")
        rows += [(path, label) for path in files]
    return rows


def _from_devkit(images: Path, folder: Path, synsets: Synsets, request: Request) -> list[tuple[Path, int]]:
    devkit = first_existing([folder / "ILSVRC2012_devkit_t12" / "data"]) or folder
    how = "It is in ILSVRC2012_devkit_t12.tar.gz (image-net.org, after registration)."
    truth = request.file((devkit / _LABELS,), how=how)
    wnids = _devkit_ids(request.file((devkit / "meta.mat",), how=how))
    labels = {wnid: label for label, wnid in enumerate(synsets.ids)}
    rows = []
    for number, line in enumerate(read_lines(truth), 1):
        wnid = wnids.get(line.strip())
        if wnid is None:
            raise DataError(f"{truth}: line {number} is {line[:20]!r}, which is not an id in meta.mat.")
        if wnid in labels:
            rows.append((images / f"ILSVRC2012_val_{number:08d}.JPEG", labels[wnid]))
    check_all_exist([path for path, _ in rows])
    return rows


def _devkit_ids(path: Path) -> dict[str, str]:
    """Return the WordNet id for each class number (as text) of the devkit."""
    scipy_io = need("scipy.io", "data")
    try:
        synsets = scipy_io.loadmat(existing_file(path), squeeze_me=True)["synsets"]
        numbers, wnids = synsets["ILSVRC2012_ID"], synsets["WNID"]
        return {str(int(number)): str(wnid) for number, wnid in zip(numbers, wnids, strict=True)}
    except Exception as error:  # scipy raises errors of many kinds for a damaged file
        raise DataError(f"{path} is not the meta.mat of the devkit, or it is damaged ({error}).") from error


for _name, _classes in (("ilsvrc12-mini", MINI_CLASSES), ("ilsvrc12", None)):
    register(_name, partial(read_ilsvrc, _name, _classes), splits=("test",), augment=AUGMENT, files=[SYNSETS, _IMAGES])
