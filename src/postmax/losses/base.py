"""What every loss can do: the class `Loss`."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from postmax.errors import InputError
from postmax.losses.contract import class_dim
from postmax.losses.schedule import check_share
from postmax.transition import Transition


class Loss(nn.Module, ABC):
    """A loss that also knows what the logits it trains mean.

    To write a loss of your own, derive from this class, define `forward` and `posterior`, and override the other
    methods where they differ. Some training strategies also need `logits_of`. Then `postmax.losses.register` gives it a
    name. If your loss is a formula for the loss of a label, given a row of logits, write a `postmax.losses.Term`
    instead: class weights, ignored rows and the other options of `nn.CrossEntropyLoss` then work without further code.

    Losses can be weighed and added: `5 * get("nce") + 5 * get("mae")`.
    """

    @abstractmethod
    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the loss of logits (C), (N, C) or (N, C, d1, …, dk) for class indices or class probabilities."""

    @abstractmethod
    def posterior(self, logits: Tensor) -> Tensor:
        """Return P(true class | x) for every class, in the shape of `logits`, in float32 for half precision."""

    def logits_of(self, posterior: Tensor) -> Tensor:  # noqa: ARG002  (the inverse is not known here)
        """Return logits whose posterior is the given one; the inverse of `posterior`.

        A training strategy uses it to hand a loss a posterior that it has changed.

        Raises:
            InputError: If the loss cannot express every posterior, or does not define this method.
        """
        raise InputError(
            f"{type(self).__name__} does not define logits_of, the inverse of its posterior. Override it; where the "
            "posterior is the softmax of the logits, return posterior.log()."
        )

    def label_posterior(self, logits: Tensor) -> Tensor:
        """Return P(label as given | x), noise included. It differs from `posterior` where noise is removed."""
        posterior = self.posterior(logits)
        if self.transition is None:
            return posterior
        dim = class_dim(logits)
        return self.transition.corrupt_posterior(posterior.movedim(dim, -1)).movedim(-1, dim)

    def predict(self, logits: Tensor) -> Tensor:
        """Return the most probable true class, with the class dimension removed."""
        return self.posterior(logits).argmax(class_dim(logits))

    def at(self, share: float) -> Loss:
        """Return the loss after this share of the training, from 0 to 1. Most losses stay the same."""
        check_share(share)
        return self

    @property
    def mixes_rows(self) -> bool:
        """Whether the loss of a row depends on other rows of the batch."""
        return False

    @property
    def is_of_whole_batch(self) -> bool:
        """Whether the loss is one number for a batch, so that it cannot tell rows apart."""
        return False

    @property
    def transition(self) -> Transition | None:
        """The label noise that the loss knows and removes, or None if it knows no noise."""
        return None

    @property
    def complementary(self) -> bool:
        """Whether a label is a class that the row does *not* have."""
        return False

    @property
    def corrects_posterior(self) -> bool:
        """Whether the noise is removed after training, in `posterior`, and not in the loss itself."""
        return False

    @property
    def when_it_diverges(self) -> str:
        """Why a training with this loss may diverge and what to do, in sentences; empty if nothing is special about it.

        It stands at the end of the error message of a run, so options are written as settings: loss.floor=0.05.
        """
        return ""

    @property
    def stuck_at(self) -> float | None:
        """The loss of a batch from which nothing can be learnt, because the gradient is 0; None if there is none.

        A run in which every batch of an epoch has this loss has diverged.
        """
        return None

    def summable(self) -> SummableLoss:
        """Return this loss in the form in which it can be weighed and added to others.

        Raises:
            InputError: If that is impossible. The message says why.
        """
        raise InputError(
            f"{type(self).__name__} cannot be part of a sum: it is not made of loss terms. Write the loss of a label "
            "as a postmax.losses.Term, or add the values of the two losses yourself."
        )

    def __add__(self, other: object) -> SummableLoss:
        return self.summable().plus(other.summable()) if isinstance(other, Loss) else NotImplemented

    def __radd__(self, other: object) -> SummableLoss:
        """Return this loss for 0 + loss, with which `sum([first, second])` begins."""
        return self.summable() if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, factor: object) -> SummableLoss:
        return self.summable().times(factor) if isinstance(factor, int | float) else NotImplemented

    __rmul__ = __mul__


class SummableLoss(Loss):
    """A loss that can be weighed and added to others of its kind."""

    def summable(self) -> SummableLoss:
        """Return the loss itself."""
        return self

    @abstractmethod
    def plus(self, other: SummableLoss) -> SummableLoss:
        """Return the sum of both losses."""

    @abstractmethod
    def times(self, factor: float) -> SummableLoss:
        """Return the loss times a factor."""
