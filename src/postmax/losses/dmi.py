"""The determinant-based mutual information as a Module.

Xu, Cao, Kong and Wang, L_DMI: A novel information-theoretic loss function for training deep nets robust to label noise,
NeurIPS 2019.
"""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from postmax.costs.schedule import check_share, check_start
from postmax.functional.contract import check_logits, check_num_classes, class_dim, working_dtype
from postmax.functional.dmi import DMIRows, check_dmi_contract
from postmax.functional.rows import Contract, reduced_loss
from postmax.losses.base import Loss
from postmax.losses.cost import CostLoss
from postmax.losses.shown import changed, changed_contract


class DMILoss(Loss):
    """−log(|det M| + 0.001) of the joint counts M = Σ_rows q·pᵀ of labels q and predictions p.

    Label noise multiplies det M by the determinant of the transition matrix: it shifts the loss by a constant, whatever
    the matrix (apart from the 0.001). The loss belongs to a batch, not to its rows: "none" gives it to every row that
    is kept, so that its mean is the loss, and "sum" is the loss times the number of rows.

    - A batch has to hold every class. If one is missing, the determinant is 0, and so is the gradient: nothing is
      learnt from that batch.
    - Any order of the classes has the same determinant up to its sign, and at the start it is close to 0. The loss
      therefore needs a network that was trained otherwise: `at` gives cross-entropy before `start`. The published
      learning rate after it is 1e-6, with batches of 128 or 256.

    Args:
        start: The share of the training before which the loss is plain cross-entropy.
        num_classes: How many classes the logits must have, if they are to be checked.
        contract: ignore_index, reduction and label_smoothing of `nn.CrossEntropyLoss`; class weights are refused.

    Example:
        >>> import torch, postmax as pm
        >>> loss = pm.losses.DMILoss()
        >>> loss(torch.tensor([[3.0, 0.0], [0.0, 3.0], [1.0, 0.0]]), torch.tensor([0, 1, 0]))
        tensor(-0.4636)
    """

    mixes_rows = True

    def __init__(self, *, start: float = 0.5, num_classes: int | None = None, **contract: Unpack[Contract]) -> None:
        super().__init__()
        check_start(start)
        check_dmi_contract(contract)
        check_num_classes(num_classes)
        self.num_classes = num_classes
        self.start = start
        self.ignore_index = contract.get("ignore_index", -100)
        self.reduction = contract.get("reduction", "mean")
        self.label_smoothing = contract.get("label_smoothing", 0.0)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The loss of `logits` (C), (N, C) or (N, C, d1, …, dk) for class indices or class probabilities."""
        return reduced_loss(
            DMIRows(self.num_classes),
            logits,
            target,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )

    def at(self, share: float) -> Loss:
        """The loss after this share of the training, from 0 to 1: cross-entropy before `start`."""
        check_share(share)
        if share >= self.start:
            return self
        return CostLoss(
            "ce",
            num_classes=self.num_classes,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )

    def posterior(self, logits: Tensor) -> Tensor:
        """The softmax, in the shape of `logits`, float32 for half precision."""
        check_logits(logits, self.num_classes)
        return logits.to(working_dtype(logits)).softmax(class_dim(logits))

    def label_posterior(self, logits: Tensor) -> Tensor:
        return self.posterior(logits)

    def predict(self, logits: Tensor) -> Tensor:
        """The most probable class, with the class dimension removed."""
        return self.posterior(logits).argmax(class_dim(logits))

    def extra_repr(self) -> str:
        """What the loss is made of, for `print`."""
        own = changed(start=(self.start, 0.5), num_classes=(self.num_classes, None))
        return ", ".join([*own, *changed_contract(self)])
