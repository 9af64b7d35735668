"""A program for a child process: compute in bfloat16 on the CPU, forward and backward, and compare with float32.

On some CPUs torch ends the process while it does this. `postmax.train.precision` therefore runs this file as a program
of its own. It prints "ok", or which operation gave wrong numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

# torch chooses its kernels by shape and layout, so there are small, odd and large sizes, as in our networks.
_LINEAR = ((1, 30, 8), (32, 8, 2), (57, 33, 17), (128, 64, 64), (256, 784, 512), (512, 1280, 1000))  # rows, in, out
_STACKED = ((5, 32, 30, 8), (4, 128, 256, 64))  # networks, rows, in, out
_CONVOLUTION = (  # channels in, channels out, side of the image, side of the kernel, stride
    (3, 16, 9, 3, 1),
    (3, 64, 32, 7, 2),
    (16, 32, 16, 3, 2),
    (64, 128, 8, 1, 1),
    (128, 128, 16, 3, 1),
)
_LAYOUTS = (torch.contiguous_format, torch.channels_last)
_MOST_ERROR = 0.1  # relative to the length of a tensor: bfloat16 has less than 0.01, a wrong kernel about 1

Operation = Callable[[Tensor, Tensor], Tensor]


def first_failure() -> str | None:
    """Return the first operation whose output or gradients are wrong in bfloat16, or None."""
    torch.manual_seed(0)
    for name, operation, inputs, weight in _operations():
        full, mixed = (_results(operation, inputs, weight, autocast) for autocast in (False, True))
        # A comparison with NaN is false, so NaN counts as wrong.
        if not all((a - b).norm() <= _MOST_ERROR * a.norm() for a, b in zip(full, mixed, strict=True)):
            return name
    return None


def _operations() -> Iterator[tuple[str, Operation, Tensor, Tensor]]:
    for rows, inputs, outputs in _LINEAR:
        yield "a linear layer", F.linear, torch.randn(rows, inputs), torch.randn(outputs, inputs)
    for networks, rows, inputs, outputs in _STACKED:
        yield "stacked layers", torch.bmm, torch.randn(networks, rows, inputs), torch.randn(networks, inputs, outputs)
    for inputs, outputs, side, kernel, stride in _CONVOLUTION:
        convolution = partial(F.conv2d, stride=stride, padding=kernel // 2)
        images, weight = torch.randn(16, inputs, side, side), torch.randn(outputs, inputs, kernel, kernel)
        for layout in _LAYOUTS:
            yield "a convolution", convolution, images.to(memory_format=layout), weight.to(memory_format=layout)


def _results(operation: Operation, inputs: Tensor, weight: Tensor, autocast: bool) -> list[Tensor]:
    """Return the output and the gradients of both arguments, in float32."""
    leaves = [tensor.clone().requires_grad_() for tensor in (inputs, weight)]
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        output = operation(*leaves)
    return [output.detach().float(), *torch.autograd.grad(output.float().square().sum(), leaves)]


def _leave_no_core_file() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows has no such module
        import resource  # noqa: PLC0415

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _leave_no_core_file()
    wrong = first_failure()
    print("ok" if wrong is None else f"wrong numbers from {wrong}")
