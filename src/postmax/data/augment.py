"""Random crop, flip, cutout and normalisation of a whole batch of uint8 images.

There are two steps: `Augment.draw` draws a few random whole numbers for each image, and `Augment.apply` is a function
of the images and these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from postmax.data.dataset import Statistics
from postmax.data.feature_views import are_features
from postmax.data.normalisation import STATISTICS
from postmax.data.pixels import mirror_some, scale_and_shift, windows
from postmax.errors import InputError


class Draw(NamedTuple):
    """The random numbers for each image of a batch: whole numbers, (B,) each.

    Attributes:
        top: First row of the window in the padded image.
        left: First column of the window in the padded image.
        flip: 1 where the window is mirrored left to right.
        cutout_row: Middle row of the blanked square, in the window.
        cutout_column: Middle column of the blanked square.
    """

    top: Tensor
    left: Tensor
    flip: Tensor
    cutout_row: Tensor
    cutout_column: Tensor


@dataclass(frozen=True)
class Augment:
    """An augmentation of uint8 images (B, C, H, W): a random crop, flip and cutout for each image, then normalisation.

    The result is floating-point. Features, float (B, d), are returned as they are, so that a training loop need not
    tell them apart.

    Args:
        crop: Side of the square window that is cut at a random place; by default the size of the image.
        padding: The number of pixels that are added on every side before the window is cut.
        padding_mode: "zeros" (black, as in the literature on noisy labels) or "reflect".
        flip: Mirror left to right with probability one half. "alternate" mirrors an image in every other epoch: which
            images begin mirrored is drawn once, by `Batches`. Two epochs then show each image in both ways, which
            chance does for only half of the images (Jordan, 2024). All weak views of an epoch mirror an image alike.
            Without epochs, and in the strong view, it is the same as True.
        cutout: Side of a square around a random pixel that is set to 0 after normalisation, which is the mean colour.
            It lies partly outside the image if the pixel is near the edge (DeVries and Taylor, 2017). 0 for no square.
        statistics: Channel means and deviations for the normalisation; by default pixels are scaled to [0, 1].
        dtype: The dtype of the result. The arithmetic is float32.
        random: False for evaluation: the window is the middle of the image, and nothing is flipped or blanked.

    Raises:
        InputError: If a setting has an impossible value.

    Example:
        >>> images = torch.zeros(5, 3, 32, 32, dtype=torch.uint8)
        >>> augment = Augment(cutout=8, statistics=STATISTICS["cifar10"])
        >>> augment(images, torch.Generator().manual_seed(0)).shape
        torch.Size([5, 3, 32, 32])
        >>> Augment(crop=24)(images).shape, augment.evaluation()(images).dtype
        (torch.Size([5, 3, 24, 24]), torch.float32)
    """

    crop: int | None = None
    padding: int = 4
    padding_mode: Literal["zeros", "reflect"] = "zeros"
    flip: bool | Literal["alternate"] = True
    cutout: int = 0
    statistics: Statistics | None = None
    dtype: torch.dtype = torch.float32
    random: bool = True

    def __post_init__(self) -> None:
        if self.padding < 0 or self.cutout < 0:
            raise InputError(f"padding and cutout count pixels; got {self.padding} and {self.cutout}.")
        if self.crop is not None and self.crop < 1:
            raise InputError(f"crop is the side of the window in pixels, or None for the whole image; got {self.crop}.")
        if self.padding_mode not in ("zeros", "reflect"):
            raise InputError(f'padding_mode is "zeros" or "reflect", not {self.padding_mode!r}.')
        if self.flip not in (True, False, "alternate"):
            raise InputError(f'flip is True, False or "alternate", not {self.flip!r}.')
        if not self.dtype.is_floating_point:
            raise InputError(f"dtype must be a floating-point type, got {self.dtype}.")
        if self.statistics is not None and not all(std > 0 for std in self.statistics.std):
            raise InputError(f"a standard deviation must be positive to divide by it; got {self.statistics.std}.")

    @classmethod
    def none(cls, statistics: Statistics | None = None, *, dtype: torch.dtype = torch.float32) -> Augment:
        """Return an augmentation that only normalises."""
        return cls(padding=0, flip=False, statistics=statistics, dtype=dtype, random=False)

    def evaluation(self) -> Augment:
        """Return this augmentation without randomness, for evaluation: the window is the middle of the image."""
        return replace(self, random=False)

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw random numbers and apply them. Without a generator they come from torch's global one."""
        if are_features(images):
            return images
        return self.apply(images, self.draw(images, generator))

    def draw(self, images: Tensor, generator: torch.Generator | None = None) -> Draw:
        """Return random numbers for these images, on the device of the generator.

        Raises:
            InputError: If these are not uint8 images (B, C, H, W), the window is larger than the padded image, or the
                padding cannot be reflected.
        """
        count, _, height, width = image_shape(images)
        rows, columns = self.window(height, width)
        top_places, left_places = height + 2 * self.padding - rows + 1, width + 2 * self.padding - columns + 1
        if min(top_places, left_places) < 1:
            raise InputError(
                f"a crop of {self.crop} does not fit into images of {height}×{width} padded by {self.padding}: "
                "choose a smaller crop, more padding, or read the images larger."
            )
        if self.padding_mode == "reflect" and self.padding >= min(height, width):
            raise InputError(
                f"images of {height}×{width} cannot be reflected over {self.padding} pixels of padding: enlarge them, "
                "or choose another augmentation."
            )
        if not self.random:
            still = torch.zeros(count, dtype=torch.int64)
            return Draw(still + (top_places - 1) // 2, still + (left_places - 1) // 2, still, still, still)

        def below(limit: int) -> Tensor:
            device = None if generator is None else generator.device
            return torch.randint(limit, (count,), generator=generator, device=device)

        return Draw(below(top_places), below(left_places), below(2), below(rows), below(columns))

    def apply(self, images: Tensor, draw: Draw) -> Tensor:
        """Return the images cropped, flipped, normalised and blanked as drawn, on the device of the images.

        Raises:
            InputError: If these are not uint8 images (B, C, H, W), or have other channels than the statistics.
        """
        draw = Draw(*(numbers.to(images.device, non_blocking=True) for numbers in draw))
        return self.normalise(self.crop_and_flip(images, draw), draw)

    def crop_and_flip(self, images: Tensor, draw: Draw) -> Tensor:
        """Return the windows of the images as drawn, mirrored where it is drawn: uint8, the first half of `apply`."""
        _, _, height, width = image_shape(images)
        rows, columns = self.window(height, width)
        if self.padding and (self.random or self.crop is not None):  # otherwise the window is the image itself
            mode = "constant" if self.padding_mode == "zeros" else "reflect"
            images = F.pad(images, (self.padding,) * 4, mode=mode)
        if images.shape[2:] != (rows, columns):
            images = windows(images, draw.top, draw.left, rows, columns)
        if self.flip and self.random:
            images = mirror_some(images, draw.flip)
        return images

    def normalise(self, windows: Tensor, draw: Draw | None = None) -> Tensor:
        """Return uint8 windows as normalised floats, blanked as drawn: the second half of `apply`.

        Without a draw nothing is blanked.
        """
        _, channels, rows, columns = windows.shape
        scale, shift = scale_and_shift(self.statistics, channels, windows.device)
        pixels = windows.to(torch.float32).mul_(scale).add_(shift)
        if self.cutout and self.random and draw is not None:
            pixels.mul_(self._kept(draw, rows, columns))
        return pixels.to(self.dtype)

    def window(self, height: int, width: int) -> tuple[int, int]:
        """Return the numbers of rows and columns of the result, for images of this size."""
        return (height, width) if self.crop is None else (self.crop, self.crop)

    def _kept(self, draw: Draw, rows: int, columns: int) -> Tensor:
        """Return masks (B, 1, rows, columns) that are 0 in the blanked squares and 1 elsewhere.

        Each mask is a window of one larger mask, which has the square in its middle.
        """
        stencil = torch.ones(1, 1, 2 * rows, 2 * columns, device=draw.top.device)
        above, before = max(rows - self.cutout // 2, 0), max(columns - self.cutout // 2, 0)
        below, behind = rows - self.cutout // 2 + self.cutout, columns - self.cutout // 2 + self.cutout
        stencil[..., above:below, before:behind] = 0
        return windows(stencil, rows - draw.cutout_row, columns - draw.cutout_column, rows, columns)


def standard(name: str, **changes: Any) -> Augment:
    """Return the augmentation that the literature trains a data set with, by the name of its statistics.

    CIFAR: zero padding of 4, crop, flip. "imagenet": a window of 224 and flip (read the images at 256, for example).
    MNIST and Fashion-MNIST: normalisation only.

    Args:
        name: A name in `STATISTICS`. "cifar10:elr" is the augmentation of CIFAR-10 with the statistics in the code of
            ELR.
        changes: Other settings of `Augment`, such as `cutout=16`.

    Raises:
        InputError: If there is no such name.

    Example:
        >>> standard("cifar10", cutout=16).padding
        4
    """
    if name not in STATISTICS:
        raise InputError(f"no standard augmentation is called {name!r}; there are {', '.join(sorted(STATISTICS))}.")
    settings: dict[str, dict[str, Any]] = {
        "cifar10": {"padding": 4},
        "cifar100": {"padding": 4},
        "imagenet": {"padding": 0, "crop": 224},
    }
    still = {"padding": 0, "flip": False}
    return Augment(**{"statistics": STATISTICS[name], **settings.get(name.partition(":")[0], still), **changes})


def image_shape(images: Tensor) -> tuple[int, int, int, int]:
    """Return B, C, H and W of a batch of images.

    Raises:
        InputError: If these are not uint8 images (B, C, H, W).
    """
    if images.dtype != torch.uint8 or images.dim() != 4:
        raise InputError(
            f"augmentation is for uint8 images (B, C, H, W), got {images.dtype} of shape {tuple(images.shape)}. "
            "Keep pixels as whole numbers 0…255: normalisation turns them into floats."
        )
    count, channels, height, width = images.shape
    return count, channels, height, width
