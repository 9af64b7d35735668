"""Losses as functions, for use without a Module."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from postmax.losses.base import Loss
from postmax.losses.dmi import dmi_loss
from postmax.losses.fpml import fpml_loss
from postmax.losses.options import Contract, check_contract
from postmax.losses.reduction import reduced_loss
from postmax.losses.term import Term
from postmax.losses.term_loss import TermRowLoss
from postmax.losses.term_options import base_term

__all__ = ["dmi_loss", "fpml_loss", "term_loss"]


def term_loss(logits: Tensor, target: Tensor, term: str | Term | Loss, **contract: Unpack[Contract]) -> Tensor:
    """Return the loss of logits and targets for a term such as "gce", "nce+rce" or `pm.losses.get("gce", q=0.5)`.

    Args:
        logits: (C), (N, C) or (N, C, d1, …, dk).
        target: Class indices or class probabilities.
        term: A term, a loss that is made of terms, or its name.
        contract: The options weight, ignore_index, reduction and label_smoothing of `nn.CrossEntropyLoss`.

    Example:
        >>> import torch
        >>> logits, labels = torch.tensor([[2.0, -1.0, 0.5]]), torch.tensor([0])
        >>> term_loss(logits, labels, "ce") == torch.nn.functional.cross_entropy(logits, labels)
        tensor(True)
    """
    check_contract(**contract)
    resolved = base_term(term)
    if contract.get("weight") is not None:
        resolved.refuse_weights()
    return reduced_loss(TermRowLoss(resolved), logits, target, **contract)
