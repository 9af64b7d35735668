"""Amplitudes and phases of the frequencies of feature maps, and gradients that reach only one of the two."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

_MAP_DIMENSIONS = 4
# The frequencies of a real map of at most 2×2 pixels are real numbers. Their phases are signs.
_ONLY_SIGNS = 2


class _WithoutAmplitude(torch.autograd.Function):
    """The identity, whose gradient does not reach the amplitudes."""

    @staticmethod
    def forward(ctx: Any, maps: Tensor) -> Tensor:
        ctx.save_for_backward(maps)
        return maps.view_as(maps)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (maps,) = ctx.saved_tensors
        return phase_gradient(maps, gradient)


def phase_gradient(maps: Tensor, gradient: Tensor) -> Tensor:
    """Return the part of a gradient that reaches feature maps through the phases of their frequencies.

    The discrete Fourier transform F of each map has an amplitude |F| and a phase angle(F) at each frequency. If the
    amplitudes are taken for constants, what is left of the transformed gradient G is G − Re(G·Ū)·U, with U = F/|F|.
    A frequency of amplitude 0 has no phase, and nothing is left of its gradient.

    Each channel of each row is transformed by itself, over the two axes of the map.

    Args:
        maps: The feature maps, (B, C, H, W).
        gradient: The gradient with respect to them, of the same shape.

    Example:
        >>> maps = torch.tensor([[[[1.0, 0.0, 0.0]]]])  # a shift changes phases alone, a factor amplitudes alone
        >>> phase_gradient(maps, torch.tensor([[[[0.0, 1.0, -1.0]]]])).round(decimals=4)
        tensor([[[[ 0.,  1., -1.]]]])
        >>> phase_gradient(maps, maps).abs().max() < 1e-6
        tensor(True)
    """
    size = maps.shape[-2:]
    spectrum, slope = torch.fft.rfft2(maps.float()), torch.fft.rfft2(gradient.float())
    lengths = spectrum.abs()
    directions = spectrum / lengths.clamp_min(torch.finfo(lengths.dtype).tiny)
    radial = (slope * directions.conj()).real * directions
    left = torch.where(lengths > 0, slope - radial, torch.zeros_like(slope))
    found: Tensor = torch.fft.irfft2(left, s=size)
    return found.to(gradient.dtype)


@contextmanager
def amplitudes_detached(module: nn.Module) -> Iterator[None]:
    """Inside, no gradient reaches the amplitudes of the output of a module. The output itself stays the same.

    Where the phases are only signs, which a small step does not change, no gradient reaches the module at all. This is
    so for features that are no maps, and for maps of at most 2×2 pixels.

    Example:
        >>> layer = nn.Conv2d(1, 1, 1, bias=False)  # with a single weight, it can only change amplitudes
        >>> with amplitudes_detached(layer):
        ...     layer(torch.randn(1, 1, 4, 4)).square().sum().backward()
        >>> layer.weight.grad.abs().max() < 1e-4
        tensor(True)
    """
    hook = module.register_forward_hook(lambda _module, _inputs, output: _without_amplitude(output))
    try:
        yield
    finally:
        hook.remove()


def _without_amplitude(output: Tensor) -> Tensor:
    if output.ndim != _MAP_DIMENSIONS or max(output.shape[-2:]) <= _ONLY_SIGNS:
        return output.detach()
    found: Tensor = _WithoutAmplitude.apply(output)  # type: ignore[no-untyped-call]
    return found
