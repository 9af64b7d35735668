"""Choose rows at random, with the same share of every class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from postmax.random_bits import random_bits


def stratified_mask(labels: Tensor, share: float, *, seed: int = 0, key: str = "split") -> Tensor:
    """Return a mask that is True for a share of the rows of each class. A seed gives the same rows on every machine.

    Another `key` gives an unrelated draw from the same seed, for a second split of the same rows.

    Example:
        >>> stratified_mask(torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]), 0.25).view(2, 4).sum(1)
        tensor([1, 1])
    """
    return _pick(labels, [round(share * int(count)) for count in torch.bincount(labels)], seed, key)


def stratified_rows(labels: Tensor, rows: int, *, seed: int = 0, key: str = "split") -> Tensor:
    """Return a mask that is True for exactly `rows` rows, with the share of every class as equal as possible.

    Example:
        >>> stratified_rows(torch.tensor([0, 0, 0, 0, 1, 1]), 4).view(3, 2).sum()
        tensor(4)
    """
    counts = torch.bincount(labels).double()
    ideal = counts * rows / len(labels)
    wanted = ideal.floor()
    # Each class gets its share rounded down. The rows that are left go to the classes with the largest remainders.
    missing = int(rows - wanted.sum())
    most = (ideal - wanted).argsort(descending=True, stable=True)[:missing]
    wanted[most] += 1
    return _pick(labels, wanted.long().tolist(), seed, key)


def _pick(labels: Tensor, wanted: Sequence[int], seed: int, key: str) -> Tensor:
    """Return a mask that is True for the wanted number of rows of each class."""
    keys = random_bits(len(labels), seed, key)
    mask = torch.zeros(len(labels), dtype=torch.bool)
    for code, count in enumerate(wanted):
        rows = (labels == code).nonzero()[:, 0].numpy()
        rows = rows[np.argsort(keys[rows], kind="stable")]
        mask[torch.from_numpy(rows[:count])] = True
    return mask
