"""The mean of what a network lately said about each row."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.methods.method import Setup


class RecentMean:
    """The mean of the last values of each row, such as its posteriors in the last ten epochs.

    Exactly the last values are remembered, which takes `length` times the memory of the values. Or they are forgotten
    gradually: a new value then counts 1/`length`, which takes the memory of one value. Both give the plain mean as long
    as a row has at most `length` values.

    Args:
        setup: What the loop offers. The values are per-row state.
        name: A name for that state.
        size: How many numbers a value has.
        length: How many values of a row count.
        gradual: Whether old values are forgotten gradually.
    """

    def __init__(self, setup: Setup, name: str, size: int, length: int, *, gradual: bool = False) -> None:
        self._length = length
        self._values = setup.row_state(f"{name}, values", (1 if gradual else length, size))
        self._seen = setup.row_state(f"{name}, seen", dtype=torch.int64)

    @torch.no_grad()
    def add(self, rows: Tensor, values: Tensor) -> None:
        """Remember one value (B, size) for each of these rows (B,)."""
        seen, slots = self._seen[rows], self._values.shape[1]
        if slots == self._length:
            self._values[rows, seen % slots] = values.to(self._values.dtype)
        else:
            weight = 1 / (seen + 1).clamp(max=self._length)[:, None]
            old = self._values[rows, 0]
            self._values[rows, 0] = old + weight * (values.to(old.dtype) - old)
        self._seen[rows] = seen + 1

    @property
    def known(self) -> Tensor:
        """Which rows have a value, (N,)."""
        return self._seen > 0

    def mean(self) -> Tensor:
        """Return the mean of each row, (N, size); 0 for rows without a value."""
        # Places that are still empty hold 0, so they add nothing to the sum.
        return self._values.sum(1) / self._seen.clamp(1, self._values.shape[1])[:, None]
