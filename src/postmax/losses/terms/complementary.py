"""Losses for complementary labels: the label of a row is a class that the row does not have.

Ishida, Niu, Hu and Sugiyama, Learning from complementary labels, NeurIPS 2017 (pairwise comparison);
Yu, Liu, Gong and Tao, Learning with biased complementary labels, ECCV 2018 (forward);
Ishida, Niu, Menon and Sugiyama, Complementary-label learning for arbitrary losses and models, ICML 2019 (unbiased).

The label is any of the K − 1 wrong classes, all equally likely. `pm.Transition.complementary(K)` draws such labels.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Unpack

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.losses.base import Loss
from postmax.losses.catalogue import register
from postmax.losses.contract_loss import ContractLoss
from postmax.losses.facts import Facts
from postmax.losses.numerics.odds import log_p_and_rest_of
from postmax.losses.numerics.stable import log_rest
from postmax.losses.options import Contract, check_num_classes
from postmax.losses.reduction import RowLoss
from postmax.losses.schedule import check_share
from postmax.losses.term import LabelledLogits, Term
from postmax.losses.term_options import base_term

_NO_FLOOR = (
    "The estimate of the risk of the true class has negative parts, so it has no lower bound if the base loss has no "
    "upper one. Use loss=complementary, or a bounded base (loss.base=mae)."
)


class ComplementaryTerm(Term):
    """A term whose label is a class that the row does not have."""

    @property
    def complementary(self) -> bool:
        """True."""
        return True

    @abstractmethod
    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss (…, m) of each requested label."""

    def label_posterior(self, logits: Tensor) -> Tensor:
        """Return (1 − p)/(K − 1): a class is the more probable as a label, the less the row has it."""
        return (1 - self.posterior(logits)) / (logits.shape[-1] - 1)

    def refuse_weights(self) -> None:
        """Raise an error, because class weights would weigh classes that the rows do not have."""
        raise _no_weights()


@dataclass(frozen=True)
class Complementary(ComplementaryTerm):
    """−log(1 − p) of the label's probability p, for a label that the row does not have.

    This is the forward correction for such labels, up to the constant log(K − 1). With two classes it is cross-entropy
    for the other class.
    """

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        if inputs.labels is None:
            return -log_rest(inputs.log_p)
        return -log_p_and_rest_of(inputs.logits, inputs.labels)[1]


@dataclass(frozen=True)
class ComplementaryPairwise(ComplementaryTerm):
    """(K − 1)·Σ_j σ(z_y − z_j) − (K − 1)(K − 2)/2 over the classes j other than y, for a row that is not of class y.

    Its mean over such labels is the sum of σ(z_j − z) over the logits z_j of wrong classes and the logit z of the true
    one. The published code also adds the class j = y, which is a constant.
    """

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        others = inputs.num_classes - 1
        ahead = inputs.pick(inputs.logits).unsqueeze(-1) - inputs.logits.unsqueeze(-2)
        own = torch.arange(others + 1, device=ahead.device) if inputs.labels is None else inputs.labels
        # A class that is not there (−∞) is never ahead, and the difference of two of them would be NaN.
        ahead = ahead.masked_fill(inputs.pick(inputs.logits).isneginf().unsqueeze(-1), -torch.inf)
        won = _sigmoid(ahead).masked_fill(own.unsqueeze(-1) == torch.arange(others + 1, device=ahead.device), 0.0)
        return others * won.sum(-1) - others * (others - 1) / 2


def _sigmoid(x: Tensor) -> Tensor:
    """Return σ(x), whose derivative is exact also where σ(x) rounds to 1."""
    return torch.where(x > 0, 1 - (-x).sigmoid(), x.sigmoid())


@dataclass(frozen=True)
class ComplementaryUnbiased(ComplementaryTerm):
    """The term that `complementary_unbiased` makes from checked options."""

    base: Term

    @property
    def num_classes(self) -> int | None:
        """The number of classes, if an option of the base loss fixes it."""
        return self.base.num_classes

    @property
    def meaning(self) -> object:
        """What logits mean to the base loss."""
        return self.base.meaning

    @property
    def when_it_diverges(self) -> str:
        """Why a training with this term may diverge and what to do; see `Loss`."""
        return _NO_FLOOR

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        losses = self.base(LabelledLogits(inputs.logits, None))
        return losses.sum(-1, keepdim=True) - (inputs.num_classes - 1) * inputs.pick(losses)

    def posterior(self, logits: Tensor) -> Tensor:
        """Return the posterior of the base loss, which is that of the true class."""
        return self.base.posterior(logits)

    def logits_of(self, posterior: Tensor) -> Tensor:
        """Return logits whose posterior, by the base term, is the given one."""
        return self.base.logits_of(posterior)

    def at(self, share: float) -> Term:
        """Return the estimator of the base loss after this share of the training."""
        base = self.base.at(share)
        return self if base is self.base else replace(self, base=base)


def complementary_unbiased(base: str | Term | Loss = "ce") -> ComplementaryUnbiased:
    """Σ_j base_j − (K − 1)·base_y, whose mean over labels y that a row does not have is the base loss of the true one.

    It is the loss "unbiased" for the noise `pm.Transition.complementary(K)`, for any K. With two classes it is the base
    loss of the other class.

    Args:
        base: The loss to estimate, or its name.
    """
    return ComplementaryUnbiased(_base(base))


class NonNegativeComplementaryLoss(ContractLoss):
    """Σ_j max(r_j, 0) of the estimated risks r_j of the classes, for labels that the rows do not have.

    r_j estimates the mean over rows of [j is the true class]·base_j: the mean of base_j over all rows, minus K − 1
    times the mean of [j is the label]·base_j. Its expectation is never negative if the base loss is not. Without the
    maximum this is the mean of "complementary-unbiased". The published code takes the frequencies of the labels from
    the whole training set. Here they are those of the batch, so that a class that no row of a batch has as its label
    needs no special treatment.

    The loss belongs to a batch and not to its rows: "none" gives it to every row that is kept, so that the mean is the
    loss, and "sum" is the loss times the number of rows.

    Args:
        base: The loss of which the risk is estimated, or its name.
        num_classes: The number of classes that logits must have; None if any number will do.
        contract: The options ignore_index, reduction and label_smoothing of `nn.CrossEntropyLoss`. Class weights are
            refused.

    Example:
        >>> import torch, postmax as pm
        >>> loss = pm.losses.get("complementary-non-negative")
        >>> loss(torch.tensor([[0.0, 0.0, 0.0]]), torch.tensor([2]))
        tensor(2.1972)
    """

    row_loss: NonNegativeRows

    def __init__(
        self, *, base: str | Term | Loss = "ce", num_classes: int | None = None, **contract: Unpack[Contract]
    ) -> None:
        if contract.get("weight") is not None:
            raise _no_weights()
        rows = NonNegativeRows(_base(base), num_classes)
        check_num_classes(num_classes, rows.base.num_classes)
        super().__init__(rows, num_classes, **contract)

    @property
    def complementary(self) -> bool:
        """True: a label is a class that the row does not have."""
        return True

    @property
    def is_of_whole_batch(self) -> bool:
        """True: the maximum is taken of means over the batch."""
        return True

    @property
    def mixes_rows(self) -> bool:
        """True: the loss is a property of the whole batch."""
        return True

    def posterior(self, logits: Tensor) -> Tensor:
        """Return the posterior of the base loss, which is that of the true class."""
        return self.of_rows(self.row_loss.base.posterior, logits)

    def logits_of(self, posterior: Tensor) -> Tensor:
        """Return logits whose posterior, by the base loss, is the given one."""
        return self.of_rows(self.row_loss.base.logits_of, posterior)

    def label_posterior(self, logits: Tensor) -> Tensor:
        """Return (1 − p)/(K − 1): a class is the more probable as a label, the less the row has it."""
        return self.of_rows(ComplementaryUnbiased(self.row_loss.base).label_posterior, logits)

    def at(self, share: float) -> Loss:
        """Return the loss with the base loss after this share of the training, from 0 to 1."""
        check_share(share)
        base = self.row_loss.base.at(share)
        if base is self.row_loss.base:
            return self
        return NonNegativeComplementaryLoss(base=base, num_classes=self.num_classes, **self.contract)

    def extra_repr(self) -> str:
        """Return the base and the options of the loss, for `repr`."""
        return ", ".join([repr(self.row_loss.base), *self.shown()])


@dataclass(frozen=True)
class NonNegativeRows(RowLoss):
    """The loss of a batch, given to each of its rows."""

    base: Term
    given_classes: int | None = None

    @property
    def num_classes(self) -> int | None:
        """The number of classes, if it was given or an option of the base loss fixes it."""
        return self.base.num_classes if self.given_classes is None else self.given_classes

    def of_distributions(self, rows: Tensor, q: Tensor, weight: Tensor | None, keep: Tensor | None) -> Tensor:  # noqa: ARG002  (class weights are refused)
        """Return the loss of the rows that are kept."""
        if keep is not None:
            q = torch.where(keep.unsqueeze(-1), q, 0.0)
        classes, mass = rows.shape[-1], q.sum(-1, keepdim=True)
        parts = (mass - (classes - 1) * q) * self.base(LabelledLogits(rows, None))
        count = mass.sum()
        risks = parts.reshape(-1, classes).sum(0) / torch.where(count > 0, count, 1.0)
        return risks.clamp_min(0).sum().expand(rows.shape[:-1])


def _base(base: str | Term | Loss) -> Term:
    term = base_term(base)
    if term.mixes_rows or term.complementary:
        raise InputError(
            "the base of a loss for complementary labels is an ordinary loss of a label, such as ce or gce, which does "
            "not compare rows with each other."
        )
    return term


def _no_weights() -> InputError:
    return InputError(
        "class weights cannot be combined with complementary labels: they would weigh classes that the rows do not "
        "have, and the posterior of the true ones would be wrong."
    )


_NEEDS = "labels of classes that the rows do not have"

register(
    "complementary",
    Complementary,
    "−log(1 − p) of a class that the row does not have: the forward correction for complementary labels",
    Facts(symmetric=False, bounded=False, role="passive", source="Yu et al. 2018", needs=_NEEDS),
    aliases=("complementary-forward",),
)
register(
    "complementary-pairwise",
    ComplementaryPairwise,
    "pairwise comparison of a class that the row does not have with the others",
    Facts(symmetric=True, bounded=True, role="passive", source="Ishida et al. 2017", needs=_NEEDS),
    aliases=("complementary-pc",),
)
register(
    "complementary-unbiased",
    complementary_unbiased,
    "unbiased estimator of any base loss from classes that the rows do not have",
    Facts(symmetric=False, bounded=False, role="both", source="Ishida et al. 2019", needs=_NEEDS),
)
register(
    "complementary-non-negative",
    NonNegativeComplementaryLoss,
    "the same estimator, with a risk of each class that is never below 0",
    Facts(symmetric=False, bounded=False, role="both", source="Ishida et al. 2019", needs=_NEEDS),
)
