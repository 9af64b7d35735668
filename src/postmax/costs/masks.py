"""Which class is the label asked for: to sum over the others without subtracting the label from a total."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.costs.base import Rows


def own_class(rows: Rows) -> Tensor:
    """(…, m, C), True at the class of each label asked for; (C, C) if all of them are."""
    classes = torch.arange(rows.num_classes, device=rows.logits.device)
    return classes == (classes if rows.labels is None else rows.labels).unsqueeze(-1)
