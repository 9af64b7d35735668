"""Image files that are read from disk when they are needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.errors import DataError
from postmax.extras import need
from postmax.progress import Stage, tell
from postmax.wording import advice

# Other formats are refused, because some decoders of Pillow start other programs.
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
_LARGEST_IMAGE = 64_000_000
_WHITE = (255, 255, 255, 255)


class ImageFiles:
    """Image files as a row source: an index tensor gives uint8 images (n, 3, H, W).

    Args:
        paths: One file for each row.
        size: The shorter side is scaled to this size, and the middle size × size is cut out. None leaves the images as
            they are; then they must all have the same size.
        threads: The number of images that are decoded at once; by default one for each core, at most eight.
        max_pixels: Larger images are refused before they are decoded, because a small file can decode to a huge image.

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> path = Path(tempfile.mkdtemp()) / "grey.png"
        >>> Image.new("L", (40, 20), 128).save(path)
        >>> ImageFiles([path], size=8)[torch.tensor([0, 0])].shape
        torch.Size([2, 3, 8, 8])
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        *,
        size: int | None,
        threads: int | None = None,
        max_pixels: int = _LARGEST_IMAGE,
    ) -> None:
        self.paths = [str(path) for path in paths]
        self.size = size
        self.threads = threads or min(8, os.cpu_count() or 1)
        self.max_pixels = max_pixels

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: Tensor, /) -> Tensor:
        paths = [self.paths[i] for i in index.tolist()]
        if self.threads == 1 or len(paths) < 2:
            images = [self._read(path) for path in paths]
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                images = list(pool.map(self._read, paths))
        if not images:
            side = self.size or 0
            return torch.empty(0, 3, side, side, dtype=torch.uint8)
        for path, image in zip(paths, images, strict=True):
            if image.shape != images[0].shape:
                raise DataError(
                    f"{path} is {image.shape[1]} × {image.shape[0]} pixels, but {paths[0]} is "
                    f"{images[0].shape[1]} × {images[0].shape[0]}. Give a size to bring them to: {one_size()}."
                )
        return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous()

    def _read(self, path: str) -> npt.NDArray[np.uint8]:
        return read_image(path, size=self.size, max_pixels=self.max_pixels)


def one_size() -> str:
    """Return the words with which images are brought to one size."""
    return advice(python="size=64, for example", command="data.size=64 for a run, --size 64 for noise estimate")


def read_image(path: str | Path, *, size: int | None = None, max_pixels: int = _LARGEST_IMAGE) -> npt.NDArray[np.uint8]:
    """Return one image as RGB bytes (H, W, 3), turned as its metadata say.

    Grey, palette, CMYK and 16-bit images are converted. Transparent pixels become white. Of an animation the first
    picture is taken. `size` and `max_pixels` are those of `ImageFiles`.

    Raises:
        DataError: If the file is missing, not an image, truncated, or larger than `max_pixels`.
    """
    pillow = need("PIL.Image", "data")
    with _opened(path) as image:
        _check_pixels(image, max_pixels)
        if size is not None:
            # JPEG images can be decoded at an eighth, a quarter or half of their size, which is much faster.
            image.draft("RGB", (2 * size, 2 * size))
        upright = need("PIL.ImageOps", "data").exif_transpose(image)
        rgb = _to_rgb(upright, pillow)
        return np.array(rgb if size is None else _middle(rgb, size, pillow))


def shorter_side(path: str | Path) -> int:
    """Return the shorter side of an image in pixels. The image is not decoded.

    Raises:
        DataError: If the file is missing or not an image.
    """
    with _opened(path) as image:
        return int(min(image.size))


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    """Open an image. What fails inside the block names the file."""
    pillow = need("PIL.Image", "data")
    try:
        with pillow.open(path, formats=_FORMATS) as image:
            yield image
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.") from error
    except Exception as error:  # decoders raise errors of many kinds
        raise DataError(f"{path} cannot be read: {error}. It is damaged, truncated or not an image.") from error


def image_size(path: str | Path) -> tuple[int, int]:
    """Return the width and height of an image, without decoding it.

    Raises:
        DataError: If the file is missing, or does not begin as an image does.
    """
    pillow = need("PIL.Image", "data")
    try:
        with pillow.open(path, formats=_FORMATS) as image:
            _check_pixels(image, _LARGEST_IMAGE)
            width, height = image.size
            return int(width), int(height)
    except Exception as error:  # decoders raise errors of many kinds
        raise DataError(f"{path} cannot be read: {error}. It is damaged, truncated or not an image.") from error


def unreadable(
    paths: Sequence[Path], *, size: int | None = None, threads: int | None = None, whole: bool
) -> dict[Path, str]:
    """Return the images that cannot be read, with the reasons.

    Args:
        paths: The files.
        size: The size in which they are decoded.
        threads: The number of images that are looked at at once.
        whole: Whether each image is decoded; otherwise only its beginning is read, which is much faster.
    """

    def reason(path: Path) -> str:
        try:
            read_image(path, size=size) if whole else image_size(path)
        except DataError as error:
            return str(error)
        return ""

    found: dict[Path, str] = {}
    with ThreadPoolExecutor(threads or min(8, os.cpu_count() or 1)) as pool:
        for place, (path, wrong) in enumerate(zip(paths, pool.map(reason, paths), strict=True)):
            if wrong:
                found[path] = wrong
            tell(Stage("looking at images", place + 1, len(paths), "images"))
    return found


def _check_pixels(image: Any, most: int) -> None:
    width, height = image.size
    if width * height > most:
        raise ValueError(f"it claims {width} × {height} pixels, more than the {most:,} allowed")


def _to_rgb(image: Any, pillow: Any) -> Any:
    if image.mode.startswith("I"):
        # Pillow would cut off 16-bit pixels at 255, so the upper eight bits are taken instead.
        grey = np.clip(np.asarray(image), 0, 65535).astype(np.uint16) >> 8
        return pillow.fromarray(grey.astype(np.uint8)).convert("RGB")
    if image.mode == "F":
        raise ValueError("its pixels are floating-point numbers of unknown scale")
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        return pillow.alpha_composite(pillow.new("RGBA", rgba.size, _WHITE), rgba).convert("RGB")
    return image.convert("RGB")


def _middle(image: Any, size: int, pillow: Any) -> Any:
    width, height = image.size
    scale = size / min(width, height)
    width, height = max(size, round(width * scale)), max(size, round(height * scale))
    left, top = (width - size) // 2, (height - size) // 2
    resized = image if image.size == (width, height) else image.resize((width, height), pillow.Resampling.BILINEAR)
    return resized.crop((left, top, left + size, top + size))


def check_all_exist(paths: Sequence[Path]) -> None:
    """Check that every file exists, so that a missing one is not found in the middle of a training.

    Each folder is listed once.

    Raises:
        DataError: If files are missing. The message names the first and counts the others.
    """
    listings: dict[Path, frozenset[str]] = {}
    missing = []
    for path in paths:
        folder = path.parent
        if folder not in listings:
            listings[folder] = frozenset(e.name for e in folder.iterdir()) if folder.is_dir() else frozenset()
        if path.name not in listings[folder]:
            missing.append(path)
    if missing:
        raise DataError(f"{missing[0]} is missing, and {len(missing) - 1} more of {len(paths)} listed images.")
