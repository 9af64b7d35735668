"""From the losses of rows to one loss with the contract of `nn.CrossEntropyLoss`."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from postmax.losses.contract import (
    Target,
    all_labels_count,
    check_logits,
    classes_last,
    refuse_nan,
)
from postmax.transition.full_precision import autocast_enabled, working_dtype


class RowLoss(ABC):
    """The losses of rows of logits (…, C), in working precision and with the classes last."""

    @property
    @abstractmethod
    def num_classes(self) -> int | None:
        """The number of classes, or None if any number will do."""

    def takes_labels(self) -> bool:
        """Return whether `of_labels` can be used now. Otherwise class indices are written as distributions."""
        return False

    def of_labels(self, rows: Tensor, labels: Tensor, keep: Tensor | None, reduction: str) -> Tensor:
        """Return the losses (…) of class indices, or their mean or sum.

        Args:
            rows: The logits (…, C).
            labels: The class indices (…), all within range.
            keep: (…), False for rows that do not count. None means that all rows count.
            reduction: "none", "mean" or "sum". The last two are for the common case, in which all rows count.
        """
        raise NotImplementedError

    @abstractmethod
    def of_distributions(self, rows: Tensor, q: Tensor, weight: Tensor | None, keep: Tensor | None) -> Tensor:
        """Return the losses (…) of label distributions q (…, C), with class weights if there are any."""

    def background(self, rows: Tensor) -> Tensor:
        """Return the distribution (C) towards which label smoothing moves the labels; uniform unless overridden."""
        return uniform(rows)


def uniform(rows: Tensor) -> Tensor:
    """Return the uniform distribution (C) over the classes of `rows` (…, C)."""
    return rows.new_full((rows.shape[-1],), 1 / rows.shape[-1])


def reduced_loss(
    loss: RowLoss,
    logits: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the reduced loss of logits (C), (N, C) or (N, C, d1, …, dk) for class indices or probabilities."""
    check_logits(logits, loss.num_classes)
    if autocast_enabled(logits):  # cross-entropy, too, computes in full precision here and returns it
        with torch.autocast(logits.device.type, enabled=False):
            return reduced_loss(
                loss,
                logits.to(working_dtype(logits)),
                target,
                weight=weight,
                ignore_index=ignore_index,
                reduction=reduction,
                label_smoothing=label_smoothing,
            )
    rows = classes_last(logits).to(working_dtype(logits))
    takes_labels = label_smoothing == 0 and loss.takes_labels()
    if takes_labels and weight is None and all_labels_count(rows, target, ignore_index):
        # The common case in the fewest operations, because for small batches each operation takes noticeable time.
        reduced = loss.of_labels(rows, target, None, reduction)
        refuse_nan(rows, reduced)
    else:
        checked = Target.checked(logits, target, weight, ignore_index)
        rows = checked.clear(rows)
        if takes_labels and checked.labels is not None:
            losses = loss.of_labels(rows, checked.labels, checked.keep, "none")
            if weight is not None:
                losses = losses * checked.label_weight(weight.to(losses))
        else:
            q = checked.distribution(rows, label_smoothing, loss.background(rows))
            losses = loss.of_distributions(rows, q, None if weight is None else weight.to(rows), checked.keep)
        refuse_nan(rows, losses)
        reduced = checked.reduce(losses, weight, reduction)
    return reduced if reduced.dtype == logits.dtype else reduced.to(logits.dtype)
