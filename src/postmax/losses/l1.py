"""The L1 penalty with which some losses are trained."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from postmax.errors import InputError


def l1_penalty(parameters: Iterable[Tensor]) -> Tensor:
    """Return the sum of the absolute values of all parameters, in float32 for half precision.

    ANL adds δ times this sum to its loss, in place of weight decay; `pm.losses.preset` knows the published δ. A
    parameter that is exactly 0 gets no gradient.

    Args:
        parameters: Tensors, such as `model.parameters()`.

    Raises:
        InputError: If there are no parameters, for example because a generator was used before.

    Example:
        >>> l1_penalty(torch.nn.Linear(2, 1).parameters()) > 0
        tensor(True)
    """
    terms = [parameter.abs().sum(dtype=_at_least_float32(parameter)) for parameter in parameters]
    if not terms:
        raise InputError("l1_penalty was given no parameters; a generator such as model.parameters() can be used once.")
    return torch.stack(terms).sum()


def _at_least_float32(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)
