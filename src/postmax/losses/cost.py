"""Any cost as a Module."""

from __future__ import annotations

import copy
from typing import Unpack

import torch
from torch import Tensor

from postmax import costs
from postmax.costs.base import Cost
from postmax.costs.schedule import check_share
from postmax.functional.contract import (
    autocast_enabled,
    check_logits,
    check_num_classes,
    class_dim,
    classes_last,
    working_dtype,
)
from postmax.functional.cost import CostRows
from postmax.functional.rows import Contract, check_contract, reduced_loss
from postmax.losses.base import Loss
from postmax.losses.shown import changed, changed_contract
from postmax.registry import resolve


class CostLoss(Loss):
    """A robust loss with the contract of `nn.CrossEntropyLoss`: shapes, targets, weights, ignored rows, reductions.

    Args:
        cost: A cost or its name, such as "gce" or "nce+rce"; see `postmax.costs`.
        num_classes: How many classes the logits must have, if they are to be checked.
        contract: weight, ignore_index, reduction and label_smoothing of `nn.CrossEntropyLoss`.

    Example:
        >>> import torch, postmax as pm
        >>> loss = pm.losses.CostLoss(5 * pm.costs.get("nce") + 5 * pm.costs.get("mae"))
        >>> loss(torch.tensor([[2.0, 0.0, -1.0]]), torch.tensor([0]))
        tensor(0.9352)
    """

    weight: Tensor | None

    def __init__(self, cost: str | Cost, *, num_classes: int | None = None, **contract: Unpack[Contract]) -> None:
        super().__init__()
        check_contract(contract)
        self.ignore_index = contract.get("ignore_index", -100)
        self.reduction = contract.get("reduction", "mean")
        self.label_smoothing = contract.get("label_smoothing", 0.0)
        weight = contract.get("weight")
        self.register_buffer("weight", weight)
        self.rows = CostRows(resolve(cost, Cost, costs.get), num_classes)  # type: ignore[type-abstract]
        check_num_classes(num_classes, self.cost.num_classes)
        if weight is not None:
            self.cost.refuse_weights()

    @property
    def cost(self) -> Cost:
        """What a label costs."""
        return self.rows.cost

    @property
    def mixes_rows(self) -> bool:  # type: ignore[override]
        """Whether the loss of a row depends on the labels of other rows of the batch."""
        return self.cost.mixes_rows

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The loss of `logits` (C), (N, C) or (N, C, d1, …, dk) for class indices or class probabilities."""
        return reduced_loss(
            self.rows,
            logits,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )

    def at(self, share: float) -> CostLoss:
        """The loss after this share of the training, from 0 to 1; itself unless its cost changes on the way."""
        check_share(share)
        cost = self.cost.at(share)
        if cost is self.cost:
            return self
        later = copy.copy(self)
        later.rows = CostRows(cost, self.rows.classes)
        return later

    def posterior(self, logits: Tensor) -> Tensor:
        """P(class | x) for every class, in the shape of `logits`, float32 for half precision."""
        return self._read(logits, label=False)

    def label_posterior(self, logits: Tensor) -> Tensor:
        """What is expected of the labels as they are given, noise included."""
        return self._read(logits, label=True)

    def predict(self, logits: Tensor) -> Tensor:
        """The most probable class, with the class dimension removed."""
        return self.posterior(logits).argmax(class_dim(logits))

    def _read(self, logits: Tensor, *, label: bool) -> Tensor:
        check_logits(logits, self.rows.num_classes)
        if autocast_enabled(logits):
            with torch.autocast(logits.device.type, enabled=False):
                return self._read(logits, label=label)
        rows = classes_last(logits).to(working_dtype(logits))
        read = self.cost.label_posterior(rows) if label else self.cost.posterior(rows)
        return read.movedim(-1, class_dim(logits))

    def extra_repr(self) -> str:
        """What the loss is made of, for `print`."""
        classes = changed(num_classes=(self.rows.classes, None))
        return ", ".join([repr(self.cost), *classes, *changed_contract(self)])
