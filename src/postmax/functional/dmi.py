"""The determinant-based mutual information between labels and predictions, as a function.

Xu, Cao, Kong and Wang, L_DMI: A novel information-theoretic loss function for training deep nets robust to label noise,
NeurIPS 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Unpack

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.functional.rows import Contract, check_contract, reduced_loss, uniform

_LOG_FLOOR = math.log(1e-3)
_LOG_SINGULAR = -600.0  # below it a pivot may be too small to be divided by, even in float64


def dmi_loss(logits: Tensor, target: Tensor, **contract: Unpack[Contract]) -> Tensor:
    """−log(|det M| + 0.001) for M = Σ_rows q·pᵀ, with labels q and softmax p. See `postmax.losses.DMILoss`.

    Example:
        >>> logits, labels = torch.tensor([[3.0, 0.0], [0.0, 3.0], [1.0, 0.0]]), torch.tensor([0, 1, 0])
        >>> dmi_loss(logits, labels)
        tensor(-0.4636)
    """
    check_dmi_contract(contract)
    return reduced_loss(DMIRows(), logits, target, **contract)


def check_dmi_contract(contract: Contract) -> None:
    """Refuse what cannot be done, class weights among it."""
    if contract.get("weight") is not None:
        raise InputError(
            "dmi takes no class weights: weighing the rows of a class multiplies the determinant by a constant, which "
            "changes no gradient but through the 0.001 that is added to it."
        )
    check_contract(contract)


@dataclass(frozen=True)
class DMIRows:
    """What a batch costs, given to each of its rows; see `postmax.functional.rows.RowLoss`."""

    num_classes: int | None = None

    def of_labels(self, rows: Tensor, labels: Tensor, keep: Tensor | None, reduction: str) -> None:  # noqa: ARG002
        """Labels are written as distributions, of which the matrix is a sum."""
        return

    def of_distributions(self, rows: Tensor, q: Tensor, weight: Tensor | None, keep: Tensor | None) -> Tensor:  # noqa: ARG002
        """The loss of the rows that are kept, in float64 until it is known."""
        if keep is not None:
            q = torch.where(keep.unsqueeze(-1), q, 0.0)
        classes = rows.shape[-1]
        joint = q.double().reshape(-1, classes).mT @ rows.double().softmax(-1).reshape(-1, classes)
        singular = torch.linalg.slogdet(joint.detach()).logabsdet < _LOG_SINGULAR
        safe = torch.where(singular, torch.eye(classes, dtype=joint.dtype, device=joint.device), joint)
        log_det = torch.linalg.slogdet(safe).logabsdet
        loss = torch.where(singular, -_LOG_FLOOR, -torch.logaddexp(log_det, torch.full_like(log_det, _LOG_FLOOR)))
        return loss.to(rows.dtype).expand(rows.shape[:-1])

    def background(self, rows: Tensor) -> Tensor:
        """Label smoothing spreads evenly."""
        return uniform(rows)
