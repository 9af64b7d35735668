"""Which rows are held out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from postmax.random_bits import random_bits


def stratified_mask(labels: Tensor, share: float, *, seed: int = 0, key: str = "split") -> Tensor:
    """True for `share` of each class, drawn from `seed`: the same rows on every machine.

    Another `key` gives an unrelated draw from the same seed, for a second split of the same rows.

    Example:
        >>> stratified_mask(torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]), 0.25).view(2, 4).sum(1)
        tensor([1, 1])
    """
    return _pick(labels, [round(share * int(count)) for count in torch.bincount(labels)], seed, key)


def stratified_rows(labels: Tensor, rows: int, *, seed: int = 0, key: str = "split") -> Tensor:
    """True for exactly `rows` rows, as evenly from the classes as whole numbers allow.

    Example:
        >>> stratified_rows(torch.tensor([0, 0, 0, 0, 1, 1]), 4).view(3, 2).sum()
        tensor(4)
    """
    counts = torch.bincount(labels).double()
    ideal = counts * rows / len(labels)
    wanted = ideal.floor()
    # Whole numbers first, then one more where most is missing; the first of equals.
    missing = int(rows - wanted.sum())
    most = (ideal - wanted).argsort(descending=True, stable=True)[:missing]
    wanted[most] += 1
    return _pick(labels, wanted.long().tolist(), seed, key)


def _pick(labels: Tensor, wanted: Sequence[int], seed: int, key: str) -> Tensor:
    """True for so many rows of each class."""
    keys = random_bits(len(labels), seed, key)
    mask = torch.zeros(len(labels), dtype=torch.bool)
    for code, count in enumerate(wanted):
        rows = (labels == code).nonzero()[:, 0].numpy()
        rows = rows[np.argsort(keys[rows], kind="stable")]
        mask[torch.from_numpy(rows[:count])] = True
    return mask
