"""Masks of the requested labels, for sums over the other classes that do not subtract the label from a total."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.losses.term import LabelledLogits


def own_class(inputs: LabelledLogits) -> Tensor:
    """Return a mask (…, m, C) that is True at the class of each requested label; (C, C) if all are requested."""
    classes = torch.arange(inputs.num_classes, device=inputs.logits.device)
    return classes == (classes if inputs.labels is None else inputs.labels).unsqueeze(-1)
