"""FMix: areas of any shape of each image come from another image (Harris et al., 2020)."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.data.mixtures import Mixed, are_images, device_of, draw_pairs, exchange, largest, some_features
from postmax.errors import InputError


def fmix(
    inputs: Tensor,
    targets: Tensor,
    alpha: float = 1.0,
    generator: torch.Generator | None = None,
    *,
    num_classes: int | None = None,
    at_least_half: bool = False,
    decay: float = 3.0,
) -> Mixed:
    """Replace some areas of every image by those of another image, with λ from Beta(alpha, alpha).

    Each row has its own λ and its own areas. They come from smooth random noise: the share λ of the pixels where it is
    largest stays. The noise looks alike in all directions. In the code of the authors it does not, because real and
    imaginary parts are taken from two rows of the spectrum; this is not repeated here. The weight of a row is the share
    of its pixels that stay, so inputs and targets are mixed in the same proportion. Features have no neighbours: a
    random subset of them, a share 1 − λ, is replaced.

    Args:
        inputs: Floats: images (B, C, H, W) after augmentation, or features (B, d).
        targets: Class indices (B,), or label distributions (B, K).
        alpha: A positive number. With 1, λ is uniform.
        generator: The source of the random numbers; by default torch's global generator.
        num_classes: K; needed if the targets are class indices.
        at_least_half: Whether to replace λ by max(λ, 1 − λ), so that each image is the larger part of its mixture, to
            within a pixel.
        decay: How smooth the noise is: its amplitude at frequency f is f^(−decay).

    Raises:
        InputError: If alpha is not positive, decay is negative, the inputs are neither images nor features, or inputs
            and targets do not have the same number of rows.
        LabelError: If a class index is outside 0…K−1.

    Example:
        >>> images, generator = torch.randn(4, 3, 8, 8), torch.Generator().manual_seed(0)
        >>> mixed = fmix(images, torch.tensor([0, 1, 2, 1]), 1.0, generator, num_classes=3)
        >>> [round(64 * float(weight)) for weight in mixed.weight], mixed.partner.tolist()
        ([21, 61, 14, 50], [0, 1, 3, 2])
    """
    if not 0 <= decay < float("inf"):
        raise InputError(f"decay of fmix is a finite number from 0 on, got {decay}.")
    images = are_images(inputs, "fmix")
    pairs = draw_pairs(
        inputs, targets, alpha, generator, num_classes=num_classes, per_sample=True, at_least_half=at_least_half
    )
    if not images:
        return exchange(inputs, pairs, some_features(inputs, pairs.weight, generator))
    count, _, height, width = inputs.shape
    white = torch.randn(count, height, width, generator=generator, device=device_of(inputs, generator))
    smooth = low_frequencies(white.to(inputs.device), decay).flatten(1)
    return exchange(inputs, pairs, largest(smooth, pairs.weight, generator).view(count, height, width))


def low_frequencies(noise: Tensor, decay: float) -> Tensor:
    """Return noise (B, H, W) with the amplitude at frequency f divided by f^decay.

    Frequencies below that of one wave across the longer side are treated like this one, so that 0 divides nothing.

    Example:
        >>> low_frequencies(torch.tensor([[[1.0, -1.0, 1.0, -1.0]]]), 1).tolist()  # half a wave for each pixel
        [[[2.0, -2.0, 2.0, -2.0]]]
    """
    height, width = noise.shape[1:]
    if len(noise) == 0:
        return noise
    down = torch.fft.fftfreq(height, device=noise.device)[:, None]
    across = torch.fft.rfftfreq(width, device=noise.device)
    frequency = torch.hypot(down, across).clamp_min(1 / max(height, width))
    smooth: Tensor = torch.fft.irfft2(torch.fft.rfft2(noise) / frequency**decay, s=(height, width))
    return smooth
