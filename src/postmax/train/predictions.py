"""The predicted class of each training row, gathered while training, without a second pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

# Logits are turned into predictions for many rows at once, but never for so many that memory becomes an issue.
_LOGITS_AT_ONCE = 4_000_000

Readings = Callable[[Tensor], Mapping[str, Tensor]]


class Predictions:
    """Collects logits of training rows and turns them into predicted classes.

    Args:
        readings: Turns logits (S, B, K) into posteriors by the name of the reading; "model" is used.
        shape: (S, N): how many seeds and training rows there are.
        device: Where the logits are.
    """

    def __init__(self, readings: Readings, shape: torch.Size, device: torch.device) -> None:
        self._readings = readings
        self._predicted = torch.full(shape, -1, dtype=torch.int64, device=device)
        self._waiting: list[tuple[Tensor, Tensor]] = []
        self._size = 0
        self._any = False

    def add(self, rows: Tensor, logits: Tensor) -> None:
        """Take the logits (S, B, K) of training rows (S, B)."""
        self._waiting.append((rows, logits))
        self._size += logits.numel()
        self._any = True
        if self._size > _LOGITS_AT_ONCE:
            self._predict()

    def finish(self) -> Tensor | None:
        """Return the predicted classes (S, N), −1 for rows that were not seen; None if no row was seen."""
        self._predict()
        return self._predicted if self._any else None

    def _predict(self) -> None:
        if not self._waiting:
            return
        logits = torch.cat([logits for _, logits in self._waiting], dim=1)
        finite = logits.isfinite().all(-1)
        answer = self._readings(logits.nan_to_num())["model"].argmax(-1)
        found = torch.where(finite, answer, -1)
        # One part after the other: a row may be in several parts, and the last one counts.
        for (rows, _), part in zip(self._waiting, found.split([r.shape[1] for r, _ in self._waiting], 1), strict=True):
            self._predicted.scatter_(1, rows, part)
        self._waiting, self._size = [], 0
