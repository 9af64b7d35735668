"""Images to features, through a frozen network: each image once, kept on the disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from postmax.data.dataset import RowSource
from postmax.data.embedding.extractor import Extractor, features_of, images_at_once
from postmax.data.embedding.feature_cache import FeatureCache, cache_folder
from postmax.data.embedding.image_embedding import USUAL, ImageEmbedding, image_embedding
from postmax.data.image_files import ImageFiles
from postmax.data.prefetch import read_ahead
from postmax.errors import DataError, InputError
from postmax.progress import Stage, never_silent, tell

# What a killed process loses at most, and what two blocks of large images take: some tens of megabytes.
_ROWS_OF_A_BLOCK = 256
_CHUNK = 1 << 20

Unreadable = Callable[[int, DataError], None]


def embed_images(
    images: Tensor | RowSource,
    model: str | ImageEmbedding = USUAL,
    *,
    side: int | None = None,
    batch: int | None = None,
    device: str | torch.device = "cpu",
    precision: str = "32-true",
    keep: bool = True,
    unreadable: Unreadable | None = None,
) -> Tensor:
    """Return the features of images, float32 (N, d), computed by a frozen network.

    Features that were computed before are read from the folder `embeddings` in the folder of the data sets, as long as
    the bytes of the image are the same. New ones are kept there while the work goes on.

    Args:
        images: uint8 images (N, 1 or 3, H, W), or `ImageFiles`. Files of different sizes need no `size`.
        model: The name of a network, or an embedding that was made for these or for other images.
        side: The side to which images are brought; see `image_embedding`.
        batch: How many images go through the network at once.
        device: Where the network computes.
        precision: "32-true", or "bf16-mixed" for bfloat16, which is faster where the processor has it and changes the
            features by some per cent. On a CPU ask `postmax.train.precision.check_precision` first.
        keep: Whether to read and keep features on the disk.
        unreadable: Is called with the row and the error of each image that cannot be read. Its features are NaN. By
            default such an image is an error.

    Raises:
        DataError: If an image cannot be read.
        InputError: If the network is unknown or cannot be used, or if an option has no meaning.
        MissingDependency: If the package of the network is not installed.
    """
    if precision not in ("32-true", "bf16-mixed"):
        raise InputError(f"precision is 32-true or bf16-mixed, not {precision!r}.")
    if batch is not None and batch < 1:
        raise InputError(f"a batch has at least one image, not {batch}.")
    embedding = image_embedding(images, model, side) if isinstance(model, str) else model
    if side not in (None, embedding.side):
        raise InputError(f"the embedding brings images to {embedding.side} pixels, so side={side} has no meaning.")
    source = at_side(images, embedding.side) if isinstance(images, ImageFiles) else images
    extractor = embedding.on(torch.device(device))
    at_once = batch or images_at_once(embedding.side)
    work = _Work(source, extractor, embedding.side, at_once, torch.device(device), precision)
    identity = (embedding.model, embedding.side, precision, extractor.digest)
    cache = FeatureCache(cache_folder(*identity) if keep else None, embedding.dims)
    features = torch.full((len(source), embedding.dims), torch.nan)
    with never_silent():
        _fill(features, work, cache, unreadable)
    return features


def at_side(files: ImageFiles, side: int) -> ImageFiles:
    """Return image files as a network for images of this side gets them, unless they have a size already."""
    if files.size is not None:
        return files
    return ImageFiles(files.paths, size=side, threads=files.threads, max_pixels=files.max_pixels)


@dataclass(frozen=True)
class _Work:
    """Reads images and computes their features."""

    source: Tensor | RowSource
    extractor: Extractor
    side: int
    batch: int
    device: torch.device
    precision: str

    def read(self, rows: list[int]) -> _Block:
        """Return some images, and the errors of those that cannot be read."""
        try:
            return _Block(rows, self.source[torch.tensor(rows)], {})
        except DataError:
            images, errors = {}, {}
            for row in rows:
                try:
                    images[row] = self.source[torch.tensor([row])]
                except DataError as error:
                    errors[row] = error
            nothing = [torch.zeros(0, 3, self.side, self.side, dtype=torch.uint8)]
            return _Block(list(images), torch.cat(list(images.values()) or nothing), errors)

    def features(self, images: Tensor, done: int) -> Tensor:
        """Return the features of images on the CPU. So many images were done before."""
        mixed = torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16-mixed")
        parts = []
        for part in images.split(self.batch):
            with mixed:
                parts.append(features_of(self.extractor, part.to(self.device), self.side).cpu())
            done += len(part)
            tell(Stage("embedding images", done, len(self.source), "images"))
        return torch.cat(parts)


class _Block(NamedTuple):
    rows: list[int]
    images: Tensor
    errors: dict[int, DataError]


def _fill(features: Tensor, work: _Work, cache: FeatureCache, unreadable: Unreadable | None) -> None:
    """Write the features of all rows: first those that are kept, then the others block by block."""
    places: dict[bytes, list[int]] = {}  # the rows of each image whose features are still missing
    for row, key in enumerate(_keys(work.source)):
        places.setdefault(key, []).append(row)
    done = _take_known(features, cache, places)
    key_of = {rows[0]: key for key, rows in places.items()}
    blocks = [rows.tolist() for rows in torch.tensor(list(key_of)).split(_ROWS_OF_A_BLOCK)]
    # The next images are decoded while the network computes.
    for block in read_ahead(work.read, blocks if key_of else [], threads=1, ahead=1):
        for row, error in block.errors.items():
            if unreadable is None:
                raise error
            for other in places.pop(key_of[row], ()):
                unreadable(other, error)
                done += 1
        done += _take_known(features, cache, places)  # another process may have been faster
        new = [place for place, row in enumerate(block.rows) if key_of[row] in places]
        if not new:
            continue
        keys = [key_of[block.rows[place]] for place in new]
        found = work.features(block.images[new], done)
        cache.keep(keys, found.numpy())
        for key, values in zip(keys, found, strict=True):
            rows = places.pop(key)
            features[rows] = values
            done += len(rows)


def _take_known(features: Tensor, cache: FeatureCache, places: dict[bytes, list[int]]) -> int:
    """Write the features that are kept, take their rows out of `places`, and return how many rows that were."""
    count = 0
    for key, values in cache.news(places):
        if key in places:
            mine = places.pop(key)
            features[mine] = torch.from_numpy(values)
            count += len(mine)
    return count


def _keys(source: Tensor | RowSource) -> Iterator[bytes]:
    """Yield a SHA-256 of each image: of the bytes of its file and how it is decoded, or of its pixels."""
    if isinstance(source, ImageFiles):
        how = f"file {source.size}\0".encode()
        with ThreadPoolExecutor(source.threads) as pool:
            for start in range(0, len(source), _ROWS_OF_A_BLOCK):
                tell(Stage("looking for images that are embedded already", start, len(source), "images"))
                yield from pool.map(lambda path: _file_key(path, how), source.paths[start : start + _ROWS_OF_A_BLOCK])
        return
    for rows in torch.arange(len(source)).split(_ROWS_OF_A_BLOCK):
        for image in source[rows].cpu():
            yield hashlib.sha256(f"pixels {tuple(image.shape)}\0".encode() + image.numpy().tobytes()).digest()


def _file_key(path: str, how: bytes) -> bytes:
    digest = hashlib.sha256(how)
    try:
        with Path(path).open("rb") as file:
            while part := file.read(_CHUNK):
                digest.update(part)
    except OSError:  # the error comes when the image is read
        digest.update(path.encode())
    return digest.digest()
