"""The Module of a `RowLoss`: a loss with the whole contract of `nn.CrossEntropyLoss`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import torch
from torch import Tensor

from postmax.losses.base import Loss
from postmax.losses.contract import check_logits, class_dim, classes_last
from postmax.losses.options import Contract, check_contract
from postmax.losses.reduction import RowLoss, reduced_loss
from postmax.transition.full_precision import autocast_enabled, working_dtype


class ContractLoss(Loss):
    """A loss with the shapes, targets, class weights, ignored rows and reductions of `nn.CrossEntropyLoss`.

    Args:
        row_loss: The losses of rows.
        num_classes: The number of classes that logits must have; None if any number will do.
        contract: The options weight, ignore_index, reduction and label_smoothing of `nn.CrossEntropyLoss`.
    """

    weight: Tensor | None

    def __init__(self, row_loss: RowLoss, num_classes: int | None, **contract: Unpack[Contract]) -> None:
        super().__init__()
        check_contract(**contract)
        self.row_loss = row_loss
        self.num_classes = num_classes
        self.register_buffer("weight", contract.get("weight"))
        self.ignore_index = contract.get("ignore_index", -100)
        self.reduction = contract.get("reduction", "mean")
        self.label_smoothing = contract.get("label_smoothing", 0.0)

    @property
    def contract(self) -> Contract:
        """The options that the loss shares with `nn.CrossEntropyLoss`."""
        return {
            "weight": self.weight,
            "ignore_index": self.ignore_index,
            "reduction": self.reduction,
            "label_smoothing": self.label_smoothing,
        }

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the loss of logits (C), (N, C) or (N, C, d1, …, dk) for class indices or class probabilities."""
        return reduced_loss(self.row_loss, logits, target, **self.contract)

    def of_rows(self, function: Callable[[Tensor], Tensor], logits: Tensor) -> Tensor:
        """Return `function` of the logits as rows (…, C) in working precision, in the shape of `logits`."""
        check_logits(logits, self.row_loss.num_classes)
        if autocast_enabled(logits):
            with torch.autocast(logits.device.type, enabled=False):
                return self.of_rows(function, logits)
        rows = classes_last(logits).to(working_dtype(logits))
        return function(rows).movedim(-1, class_dim(logits))

    def shown(self, **options: tuple[Any, Any]) -> list[str]:
        """Return `name=value` for each option of `repr` that differs from its default, shared options included.

        Args:
            options: The options of this loss, each as (value, default).
        """
        shared = {
            "num_classes": (self.num_classes, None),
            "ignore_index": (self.ignore_index, -100),
            "reduction": (self.reduction, "mean"),
            "label_smoothing": (self.label_smoothing, 0.0),
        }
        return [f"{name}={value!r}" for name, (value, default) in {**options, **shared}.items() if value != default]
