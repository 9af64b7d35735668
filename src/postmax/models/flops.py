"""Count the arithmetic operations of a network."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


def flops(model: nn.Module, input_shape: Sequence[int]) -> int:
    """Return the number of floating-point operations in the convolutions and matrix products of one forward pass.

    It is for one row, as training sees it: a network that looks at a row twice in evaluation, such as `Fast` with
    `test_flips`, is counted once. A multiplication and the addition after it count as two. Training takes about three
    times as many.

    Args:
        model: Any network. Its mode, parameters and statistics do not change.
        input_shape: The shape of one row.

    Example:
        >>> flops(nn.Linear(30, 2), (30,))
        120
    """
    parameter = next(model.parameters())
    rows = torch.zeros(1, *input_shape, dtype=parameter.dtype, device=parameter.device)
    was_training = [module.training for module in model.modules()]
    model.eval()  # batch normalisation cannot train on a single row
    model.training = any(True for _ in model.children())  # but the network itself does what it does in training
    try:
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            model(rows)
    finally:
        for module, training in zip(model.modules(), was_training, strict=True):
            module.training = training
    return int(counter.get_total_flops())
