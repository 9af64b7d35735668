"""What a label costs in relation to all labels: normalisation makes any cost symmetric.

Ma et al., Normalized loss functions for deep learning with noisy labels, ICML 2020.
"""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.costs.base import Rows
from postmax.costs.stable import share


def normalised(rows: Rows, prices: Tensor) -> Tensor:
    """The price of each label asked for, divided by the sum of the prices (…, C) of all; none may be negative."""
    return share(rows.of(prices), _others(rows, prices))


def remainder(rows: Rows, prices: Tensor) -> Tensor:
    """1 − `normalised`: the share of all other labels, without a subtraction."""
    return share(_others(rows, prices), rows.of(prices))


def _others(rows: Rows, prices: Tensor) -> Tensor:
    """(…, m) the sum of the prices of all labels but the one asked for, which may be larger by far."""
    if rows.labels is not None:
        return prices.scatter(-1, rows.labels, 0.0).sum(-1, keepdim=True)
    total = prices.sum(-1, keepdim=True)
    most = prices > total / 2  # of one label at most; total − price would cancel there, and nowhere else
    return torch.where(most, prices.masked_fill(most, 0.0).sum(-1, keepdim=True), total - prices)
