"""The determinant-based mutual information between labels and predictions: the Module and the function.

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
from postmax.losses.base import Loss, SummableLoss
from postmax.losses.catalogue import register
from postmax.losses.contract_loss import ContractLoss
from postmax.losses.facts import Facts
from postmax.losses.options import Contract, check_contract, check_num_classes
from postmax.losses.reduction import RowLoss, reduced_loss
from postmax.losses.schedule import check_share, check_start
from postmax.losses.term_loss import TermLoss
from postmax.losses.terms.ce import CE

_LOG_FLOOR = math.log(1e-3)
_LOG_SINGULAR = -600.0  # below this, a pivot may be too small to divide by, even in float64


class DMILoss(ContractLoss):
    """−log(|det M| + 0.001) of the joint counts M = Σ_rows q·pᵀ of labels q and predictions p.

    Label noise multiplies det M by the determinant of the transition matrix. Every such matrix therefore shifts the
    loss by a constant (apart from the 0.001). The loss belongs to a batch and not to its rows: "none" gives it to every
    row that is kept, so that the mean is the loss, and "sum" is the loss times the number of rows.

    - A batch must hold every class. If one is missing, the determinant is 0, and so is the gradient: the network learns
      nothing from that batch.
    - Every order of the classes has the same determinant up to its sign, and at the start it is close to 0. The loss
      therefore needs a network that was trained with another loss: `at` gives cross-entropy before `start`. From random
      weights it finds the classes in some other order.
    - Near 0 its gradient explodes. With ten classes and batches of 128, learning rates of 0.0001 to 0.001 worked after
      cross-entropy, with SGD and Adam; the published one is 1e-6. With batches of 32, or with 0.1, the network often
      stops predicting some class and learns nothing any more (docs/losses.md).

    Args:
        start: The share of the training before which the loss is plain cross-entropy.
        num_classes: The number of classes that logits must have; None if any number will do.
        contract: The options ignore_index, reduction and label_smoothing of `nn.CrossEntropyLoss`. Class weights are
            refused.

    Example:
        >>> import torch, postmax as pm
        >>> loss = pm.losses.get("dmi")
        >>> loss(torch.tensor([[3.0, 0.0], [0.0, 3.0], [1.0, 0.0]]), torch.tensor([0, 1, 0]))
        tensor(-0.4636)
    """

    def __init__(self, *, start: float = 0.5, num_classes: int | None = None, **contract: Unpack[Contract]) -> None:
        check_start(start)
        _check_dmi_contract(contract)
        check_num_classes(num_classes)
        super().__init__(DMIRowLoss(num_classes), num_classes, **contract)
        self.start = start

    @property
    def is_of_whole_batch(self) -> bool:
        """True: the determinant belongs to the batch."""
        return True

    @property
    def mixes_rows(self) -> bool:
        """True: the loss is a property of the whole batch."""
        return True

    @property
    def when_it_diverges(self) -> str:
        """Why a training with this loss may diverge and what to do; see `Loss`."""
        return (
            "dmi is −log of the determinant of a table of labels and predictions. The determinant is 0, and nothing is "
            "learnt, where a batch lacks a class or no row is predicted as some class; near 0 its gradient explodes. "
            "Train with cross-entropy first (loss.start), with a dozen rows or more of each class in a batch "
            "(batch_size), and with a small learning rate, such as optimiser.name=adam optimiser.lr=0.001."
        )

    @property
    def stuck_at(self) -> float:
        """The loss of a determinant of 0."""
        return -_LOG_FLOOR

    def at(self, share: float) -> Loss:
        """Return the loss after this share of the training, from 0 to 1: cross-entropy before `start`."""
        check_share(share)
        return self if share >= self.start else TermLoss(CE(), num_classes=self.num_classes, **self.contract)

    def posterior(self, logits: Tensor) -> Tensor:
        """Return the softmax, in the shape of `logits`, in float32 for half precision."""
        return self.of_rows(lambda rows: rows.softmax(-1), logits)

    def logits_of(self, posterior: Tensor) -> Tensor:
        """Return logits whose softmax is the given posterior."""
        return self.of_rows(torch.log, posterior)

    def summable(self) -> SummableLoss:
        """Raise an error, because this loss cannot be part of a sum."""
        raise InputError(
            "dmi cannot be part of a sum: it is one number for a whole batch, and not a loss of a label. Add the "
            "values of the two losses yourself."
        )

    def extra_repr(self) -> str:
        """Return the options of the loss, for `repr`."""
        return ", ".join(self.shown(start=(self.start, 0.5)))


def dmi_loss(logits: Tensor, target: Tensor, **contract: Unpack[Contract]) -> Tensor:
    """Return −log(|det M| + 0.001) for M = Σ_rows q·pᵀ, with labels q and softmax p. See `postmax.losses.DMILoss`.

    Example:
        >>> logits, labels = torch.tensor([[3.0, 0.0], [0.0, 3.0], [1.0, 0.0]]), torch.tensor([0, 1, 0])
        >>> dmi_loss(logits, labels)
        tensor(-0.4636)
    """
    _check_dmi_contract(contract)
    return reduced_loss(DMIRowLoss(), logits, target, **contract)


def _check_dmi_contract(contract: Contract) -> None:
    if contract.get("weight") is not None:
        raise InputError(
            "dmi takes no class weights: weighing the rows of a class multiplies the determinant by a constant, which "
            "changes no gradient but through the 0.001 that is added to it."
        )
    check_contract(**contract)


@dataclass(frozen=True)
class DMIRowLoss(RowLoss):
    """The loss of a batch, given to each of its rows. Labels become distributions, because M is a sum of these."""

    given_classes: int | None = None

    @property
    def num_classes(self) -> int | None:
        """The number of classes, if it was given."""
        return self.given_classes

    def of_distributions(self, rows: Tensor, q: Tensor, weight: Tensor | None, keep: Tensor | None) -> Tensor:  # noqa: ARG002  (class weights are refused)
        """Return the loss of the rows that are kept, computed in float64."""
        if keep is not None:
            q = torch.where(keep.unsqueeze(-1), q, 0.0)
        classes = rows.shape[-1]
        joint = q.double().reshape(-1, classes).mT @ rows.double().softmax(-1).reshape(-1, classes)
        singular = torch.linalg.slogdet(joint.detach()).logabsdet < _LOG_SINGULAR
        safe = torch.where(singular, torch.eye(classes, dtype=joint.dtype, device=joint.device), joint)
        log_det = torch.linalg.slogdet(safe).logabsdet
        loss = torch.where(singular, -_LOG_FLOOR, -torch.logaddexp(log_det, torch.full_like(log_det, _LOG_FLOOR)))
        return loss.to(rows.dtype).expand(rows.shape[:-1])


register(
    "dmi",
    DMILoss,
    "determinant-based mutual information −log(|det M| + 0.001) of a batch, after a warm-up; for learning rates up to "
    "0.001 and batches with a dozen rows of each class",
    Facts(symmetric=False, bounded=True, role="both", source="Xu et al. 2019"),
    aliases=("l-dmi",),
)
