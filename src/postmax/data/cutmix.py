"""CutMix: a box of each image comes from another image (Yun et al., 2019)."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.data.mixtures import Mixed, are_images, device_of, draw_pairs, exchange, some_features


def cutmix(
    inputs: Tensor,
    targets: Tensor,
    alpha: float = 1.0,
    generator: torch.Generator | None = None,
    *,
    num_classes: int | None = None,
    at_least_half: bool = False,
) -> Mixed:
    """Replace a box of every image by that of another image, with λ from Beta(alpha, alpha).

    Each row has its own λ and its own box. The box has the shape of the image, a share 1 − λ of its area, and its
    middle at a random pixel. What lies outside the image is cut off. The weight of a row is the share of its pixels
    that are left, so inputs and targets are mixed in the same proportion. Features have no neighbours: a random subset
    of them, a share 1 − λ, is replaced.

    Args:
        inputs: Floats: images (B, C, H, W) after augmentation, or features (B, d).
        targets: Class indices (B,), or label distributions (B, K).
        alpha: A positive number. With 1, λ is uniform before the box is cut off.
        generator: The source of the random numbers; by default torch's global generator.
        num_classes: K; needed if the targets are class indices.
        at_least_half: Whether to replace λ by max(λ, 1 − λ), so that each image is the larger part of its mixture, to
            within the rounding of the box to whole pixels.

    Raises:
        InputError: If alpha is not positive, the inputs are neither images nor features, or inputs and targets do not
            have the same number of rows.
        LabelError: If a class index is outside 0…K−1.

    Example:
        >>> images, generator = torch.randn(4, 3, 8, 8), torch.Generator().manual_seed(0)
        >>> mixed = cutmix(images, torch.tensor([0, 1, 2, 1]), 1.0, generator, num_classes=3)
        >>> [round(64 * float(weight)) for weight in mixed.weight], mixed.partner.tolist()
        ([36, 60, 29, 52], [0, 1, 3, 2])
    """
    images = are_images(inputs, "cutmix")
    pairs = draw_pairs(
        inputs, targets, alpha, generator, num_classes=num_classes, per_sample=True, at_least_half=at_least_half
    )
    if not images:
        return exchange(inputs, pairs, some_features(inputs, pairs.weight, generator))
    middle = torch.rand(2, len(inputs), generator=generator, device=device_of(inputs, generator), dtype=torch.float64)
    height, width = inputs.shape[2:]
    return exchange(inputs, pairs, ~boxes(1 - pairs.weight, middle, height, width))


def boxes(area: Tensor, middle: Tensor, height: int, width: int) -> Tensor:
    """Return masks (B, H, W) of boxes with the shape of the image, cut off at its edges.

    Args:
        area: (B,) the area of each box before it is cut off, as a share of that of the image.
        middle: (2, B) the row and the column of its middle, as shares of height and width, below 1.
        height: H.
        width: W.

    Example:
        >>> boxes(torch.tensor([0.25]), torch.tensor([[0.5], [0.99]]), 4, 4).int().tolist()
        [[[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0]]]
    """

    def between(share: Tensor, size: int) -> Tensor:
        """Return (B, size): the rows or the columns of each box."""
        side = (area.sqrt() * size + 0.5).floor()
        first = (share * size).floor() - (side / 2).floor()
        places = torch.arange(size, device=area.device)
        return (places >= first[:, None]) & (places < (first + side)[:, None])

    return between(middle[0], height)[:, :, None] & between(middle[1], width)[:, None, :]
