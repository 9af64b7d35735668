"""The Module of a loss term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.losses.base import SummableLoss
from postmax.losses.contract_loss import ContractLoss
from postmax.losses.options import CONTRACT, Contract, check_num_classes, checked_weight
from postmax.losses.reduction import RowLoss
from postmax.losses.schedule import check_share
from postmax.losses.term import LabelledLogits, Term, weighted_sum
from postmax.transition import Transition


class TermLoss(ContractLoss, SummableLoss):
    """A loss made of terms, with the contract of `nn.CrossEntropyLoss`.

    `postmax.losses.get` makes one by name. Use this class for a term of your own that has no name.

    Args:
        term: The formula for the loss of a label.
        num_classes: The number of classes that logits must have; None if any number will do.
        contract: The options weight, ignore_index, reduction and label_smoothing of `nn.CrossEntropyLoss`.

    Example:
        >>> import torch, postmax as pm
        >>> loss = 5 * pm.losses.get("nce") + 5 * pm.losses.get("mae")
        >>> loss(torch.tensor([[2.0, 0.0, -1.0]]), torch.tensor([0]))
        tensor(0.9352)
    """

    row_loss: TermRowLoss

    def __init__(self, term: Term, *, num_classes: int | None = None, **contract: Unpack[Contract]) -> None:
        if not isinstance(term, Term):
            raise InputError(
                f"TermLoss takes a postmax.losses.Term, got {type(term).__name__}; pm.losses.get(name) finds a loss "
                "by its name."
            )
        super().__init__(TermRowLoss(term, num_classes), num_classes, **contract)
        check_num_classes(num_classes, term.num_classes)
        if self.weight is not None:
            term.refuse_weights()

    @property
    def term(self) -> Term:
        """The formula for the loss of a label."""
        return self.row_loss.term

    @property
    def mixes_rows(self) -> bool:
        """Whether the loss of a row depends on the labels of other rows of the batch."""
        return self.term.mixes_rows

    @property
    def transition(self) -> Transition | None:
        """The label noise that the loss knows and removes, or None if it knows no noise."""
        return self.term.transition

    @property
    def complementary(self) -> bool:
        """Whether a label is a class that the row does *not* have."""
        return self.term.complementary

    @property
    def corrects_posterior(self) -> bool:
        """Whether the noise is removed after training, in `posterior`, and not in the loss itself."""
        return self.term.corrects_posterior

    @property
    def when_it_diverges(self) -> str:
        """Why a training with this loss may diverge and what to do; see `Loss`."""
        return self.term.when_it_diverges

    def posterior(self, logits: Tensor) -> Tensor:
        """Return P(true class | x) for every class, in the shape of `logits`, in float32 for half precision."""
        return self.of_rows(self.term.posterior, logits)

    def logits_of(self, posterior: Tensor) -> Tensor:
        """Return logits whose posterior is the given one."""
        return self.of_rows(self.term.logits_of, posterior)

    def label_posterior(self, logits: Tensor) -> Tensor:
        """Return P(label as given | x), noise included."""
        return self.of_rows(self.term.label_posterior, logits)

    def at(self, share: float) -> TermLoss:
        """Return the loss after this share of the training, from 0 to 1; the loss itself if its term stays the same."""
        check_share(share)
        term = self.term.at(share)
        return self if term is self.term else self._with(term, self.num_classes)

    def plus(self, other: SummableLoss) -> TermLoss:
        """Return the sum of both losses.

        Raises:
            InputError: If their shared options differ, or if logits mean different things to them.
        """
        if not isinstance(other, TermLoss):
            raise InputError(f"{type(other).__name__} cannot be added to a loss that is made of terms.")
        for option in CONTRACT:
            mine, theirs = getattr(self, option), getattr(other, option)
            if not _same(mine, theirs):
                raise InputError(
                    f"the losses of a sum must have the same {option}, but they have {mine!r} and {theirs!r}: pass "
                    "the same value to both."
                )
        check_num_classes(self.num_classes, other.num_classes)
        term = weighted_sum((1.0, self.term), (1.0, other.term))
        return self._with(term, other.num_classes if self.num_classes is None else self.num_classes)

    def times(self, factor: float) -> TermLoss:
        """Return the loss times a finite number ≥ 0.

        Raises:
            InputError: If the factor is another number.
        """
        return self._with(weighted_sum((checked_weight("the factor", factor), self.term)), self.num_classes)

    def _with(self, term: Term, num_classes: int | None) -> TermLoss:
        """Return a loss with the options of this one and another term. It does not get the hooks of this one."""
        return TermLoss(term, num_classes=num_classes, **self.contract)

    def extra_repr(self) -> str:
        """Return the parts and options of the loss, for `repr`."""
        return ", ".join([repr(self.term), *self.shown()])


@dataclass(frozen=True)
class TermRowLoss(RowLoss):
    """The losses of rows for a term."""

    term: Term
    given_classes: int | None = None

    @property
    def num_classes(self) -> int | None:
        """The number of classes, if it was given or an option of the term fixes it."""
        return self.term.num_classes if self.given_classes is None else self.given_classes

    def takes_labels(self) -> bool:
        """Return True: a term can be evaluated for one label of each row."""
        return True

    def of_labels(self, rows: Tensor, labels: Tensor, keep: Tensor | None, reduction: str) -> Tensor:
        """Return the loss of each row's label, or the mean or sum of these losses."""
        index = labels.unsqueeze(-1)
        others = None
        if self.term.mixes_rows:
            others = _labels_of_others(torch.zeros_like(rows).scatter(-1, index, 1.0), keep)
        losses = self.term(LabelledLogits(rows, index, others))
        return losses.squeeze(-1) if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()

    def of_distributions(self, rows: Tensor, q: Tensor, weight: Tensor | None, keep: Tensor | None) -> Tensor:
        """Return the expected loss of each row's label, under its label distribution q."""
        others = _labels_of_others(q, keep) if self.term.mixes_rows else None
        losses = self.term(LabelledLogits(rows, None, others))
        # A label of probability 0 has no influence, even if its loss is infinite: 0·∞ would be NaN.
        losses = losses.masked_fill(losses.isinf() & (q == 0), 0.0)
        return ((q if weight is None else q * weight) * losses).sum(-1)


def _labels_of_others(q: Tensor, keep: Tensor | None) -> Tensor:
    """Return the label distribution (…, C) of the other rows that count, for every row; zeros if there are none."""
    own = q if keep is None else torch.where(keep.unsqueeze(-1), q, 0.0)
    others = own.reshape(-1, q.shape[-1]).sum(0) - own
    # The divisor is their mass and not their number, because a label distribution of zeros means a row to leave out.
    mass = others.sum(-1, keepdim=True)
    return others / torch.where(mass > 0, mass, 1.0)


def _same(first: object, second: object) -> bool:
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return torch.equal(first, second)
    return not isinstance(first, Tensor) and not isinstance(second, Tensor) and first == second
