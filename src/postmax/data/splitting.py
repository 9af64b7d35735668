"""Which rows are held out."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from postmax.transition.random_bits import random_bits


def stratified_mask(labels: Tensor, share: float, *, seed: int = 0, key: str = "split") -> Tensor:
    """True for `share` of each class, drawn from `seed`: the same rows on every machine.

    Another `key` gives an unrelated draw from the same seed, for a second split of the same rows.

    Example:
        >>> stratified_mask(torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]), 0.25).view(2, 4).sum(1)
        tensor([1, 1])
    """
    keys = random_bits(len(labels), seed, key)
    mask = torch.zeros(len(labels), dtype=torch.bool)
    for code in range(int(labels.max()) + 1):
        rows = (labels == code).nonzero()[:, 0].numpy()
        rows = rows[np.argsort(keys[rows], kind="stable")]
        mask[torch.from_numpy(rows[: round(share * len(rows))])] = True
    return mask
