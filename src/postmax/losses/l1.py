"""The L1 term some losses are trained with."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from postmax.errors import InputError


def l1_penalty(parameters: Iterable[Tensor]) -> Tensor:
    """The sum of the absolute values of all parameters, in float32 for half precision.

    ANL adds δ times this to its loss, in place of weight decay; `pm.losses.preset` knows the published δ. A parameter
    that is exactly 0 gets no gradient.

    Args:
        parameters: Such as `model.parameters()`.

    Raises:
        InputError: If there are none, as when a generator has been used up.

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
