"""Derivatives written out by hand, for eager mode; elsewhere the same formula in ordinary operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


def eager(kernel: type[Function], *args: Any) -> Tensor | None:
    """What the kernel gives, or None under torch.compile, torch.func and forward-mode AD, which cannot look into it."""
    if torch.compiler.is_compiling():
        return None
    try:
        result: Tensor = kernel.apply(*args)
    except RuntimeError as error:  # torch offers no public way to ask beforehand
        if "setup_context" in str(error) or "forward mode AD" in str(error):
            return None
        raise
    return result


def of_ordinary_operations(formula: Callable[[Tensor], Tensor], x: Tensor, grad: Tensor) -> Tensor:
    """The derivative of a formula times grad, itself differentiable: what a kernel gives for a second derivative."""
    gradient: Tensor
    (gradient,) = torch.autograd.grad(formula(x), x, grad, create_graph=True)
    return gradient
