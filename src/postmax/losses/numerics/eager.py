"""Questions about how torch runs the code at this moment.

The kernels of this package write their derivatives out by hand. Ordinary backward passes can use them; torch.compile,
torch.func and forward-mode AD cannot look into them and need the same formula in ordinary tensor operations.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch._C import _functorch
from torch.autograd import forward_ad


def plain_eager() -> bool:
    """Return whether code runs eagerly, without torch.compile, torch.func transforms or forward-mode AD.

    torch offers no public way to ask for the last two. `torch.autograd.Function.apply` asks the same private function
    before it refuses a kernel, and `forward_ad` keeps the number of its open levels in `_current_level`.

    Example:
        >>> plain_eager(), torch.func.vmap(lambda x: x * plain_eager())(torch.ones(2))
        (True, tensor([0., 0.]))
    """
    return (
        not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
        and forward_ad._current_level < 0
    )


def under_vmap() -> bool:
    """Return whether the code runs inside torch.func.vmap, where one tensor stands for many values."""
    transforms = _functorch.get_interpreter_stack() or ()
    return any(transform.key() == _functorch.TransformType.Vmap for transform in transforms)


def is_batched(tensor: Tensor) -> bool:
    """Return whether a tensor stands for many, as incoming gradients do under `is_grads_batched=True`.

    The result of an operation with such a tensor is larger than a plain tensor, so it cannot be written in place.
    """
    return bool(_functorch.is_batchedtensor(tensor) or _functorch.is_legacy_batchedtensor(tensor))


def differentiable_gradient(formula: Callable[[Tensor], Tensor], x: Tensor, grad: Tensor) -> Tensor:
    """Return the derivative of `formula` at `x` times `grad`, as a tensor that can be differentiated again."""
    gradient: Tensor
    (gradient,) = torch.autograd.grad(formula(x), x, grad, create_graph=True)
    return gradient
