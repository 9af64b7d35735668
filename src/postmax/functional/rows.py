"""From what a row costs to a loss that behaves like `nn.CrossEntropyLoss` in every respect."""

from __future__ import annotations

from typing import Protocol, TypedDict

import torch
from torch import Tensor

from postmax.functional.contract import (
    Target,
    autocast_enabled,
    check_logits,
    check_options,
    classes_last,
    look,
    may_look,
    refuse_nan,
    working_dtype,
)


class Contract(TypedDict, total=False):
    """The options every loss shares with `nn.CrossEntropyLoss`."""

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float


def check_contract(contract: Contract) -> None:
    """Refuse options that can be known to be wrong before any data is seen."""
    check_options(
        contract.get("reduction", "mean"),
        contract.get("label_smoothing", 0.0),
        contract.get("weight"),
        contract.get("ignore_index", -100),
    )


class RowLoss(Protocol):
    """What a loss has to say about rows of logits (…, C) in working precision, with the classes last."""

    @property
    def num_classes(self) -> int | None:
        """The number of classes, where it is fixed."""
        ...

    def of_labels(self, rows: Tensor, labels: Tensor, keep: Tensor | None, reduction: str) -> Tensor | None:
        """The losses (…) of class indices, reduced; None if they have to be written as distributions.

        Args:
            rows: Logits.
            labels: (…), all within range.
            keep: (…), False for rows that are not to count; None if all do.
            reduction: "none", or for the common case in the fewest operations "mean" or "sum".
        """
        ...

    def of_distributions(self, rows: Tensor, q: Tensor, weight: Tensor | None, keep: Tensor | None) -> Tensor:
        """The losses (…) of label distributions q (…, C), with class weights if there are any."""
        ...

    def background(self, rows: Tensor) -> Tensor:
        """What label smoothing smooths towards, (C)."""
        ...


def uniform(rows: Tensor) -> Tensor:
    """The distribution label smoothing usually smooths towards."""
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
    """The loss of logits (C), (N, C) or (N, C, d1, …, dk) for class indices or probabilities, reduced as asked."""
    classes = check_logits(logits, loss.num_classes)
    if autocast_enabled(logits):  # like cross-entropy, in full precision and returned so
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
    found = None
    if weight is None and label_smoothing == 0 and not 0 <= ignore_index < classes:
        found = _all_rows(loss, rows, target, reduction)
    if found is None:
        read = Target.read(logits, target, weight, ignore_index)
        losses = _kept_rows(loss, read.clear(rows), read, weight, label_smoothing)
        found = read.reduce(losses, weight, reduction)
    return found if found.dtype == logits.dtype else found.to(logits.dtype)


def _all_rows(loss: RowLoss, rows: Tensor, target: Tensor, reduction: str) -> Tensor | None:
    """The common case in the fewest operations: eager on the CPU, class indices, no row ignored. None if it is not."""
    if not may_look(rows) or getattr(target, "dtype", None) != torch.int64:
        return None
    if target.shape != rows.shape[:-1] or not target.numel():
        return None
    lowest, highest = (look(label) for label in target.aminmax())
    if lowest is None or highest is None or lowest < 0 or highest >= rows.shape[-1]:
        return None
    found = loss.of_labels(rows, target, None, reduction)
    if found is not None:
        refuse_nan(rows, found)
    return found


def _kept_rows(loss: RowLoss, rows: Tensor, target: Target, weight: Tensor | None, label_smoothing: float) -> Tensor:
    """Every case: ignored rows, class weights, smoothing, label distributions, transforms."""
    losses = None
    if target.labels is not None and label_smoothing == 0:
        losses = loss.of_labels(rows, target.labels, target.keep, "none")
        if losses is not None and weight is not None:
            losses = losses * target.label_weight(weight.to(losses))
    if losses is None:
        q = target.distribution(rows, label_smoothing, loss.background(rows))
        losses = loss.of_distributions(rows, q, None if weight is None else weight.to(rows), target.keep)
    refuse_nan(rows, losses)
    return losses
