"""An unbiased estimator of the loss of the true labels, from noisy labels.

Natarajan, Dhillon, Ravikumar and Tewari, Learning with noisy labels, NeurIPS 2013 (two classes);
van Rooyen and Williamson, A theory of learning with corrupted labels, JMLR 2018 (any number of them).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torch import Tensor

from postmax.errors import InputError
from postmax.losses.base import Loss
from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.term import LabelledLogits, Term
from postmax.losses.term_options import base_term, known_noise, no_weights
from postmax.transition import Transition
from postmax.transition.constant import Constant
from postmax.transition.matrix import Matrix


@dataclass(frozen=True)
class Unbiased(Term):
    """The term that `unbiased` makes from checked options."""

    noise: Transition
    base: Term
    weights: Constant = field(repr=False, compare=False)

    @property
    def mixes_rows(self) -> bool:
        """Whether the base loss mixes rows."""
        return self.base.mixes_rows

    @property
    def num_classes(self) -> int:
        """The number of classes of the noise."""
        return self.noise.num_classes

    @property
    def transition(self) -> Transition:
        """The label noise."""
        return self.noise

    @property
    def meaning(self) -> object:
        """The noise, and what logits mean to the base loss."""
        return "noisy", self.noise, self.base.meaning

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        losses = self.base(LabelledLogits(inputs.logits, None, inputs.others))
        return inputs.pick(losses @ self.weights.like(losses))

    @property
    def when_it_diverges(self) -> str:
        """Why a training with this term may diverge and what to do; see `Loss`."""
        return (
            "The inverse of the noise has negative entries, so the estimate of an unbounded loss has no lower bound. "
            "Use loss=forward, or a bounded base (loss.base=mae)."
        )

    def logits_of(self, posterior: Tensor) -> Tensor:
        """Return logits whose posterior, by the base term, is the given one."""
        return self.base.logits_of(posterior)

    def posterior(self, logits: Tensor) -> Tensor:
        """Return the posterior of the base loss, which is that of the true class."""
        return self.base.posterior(logits)

    def refuse_weights(self) -> None:
        """Raise an error, because class weights would weigh noisy labels."""
        raise no_weights("unbiased")

    def at(self, share: float) -> Term:
        """Return the estimator of the base loss after this share of the training."""
        base = self.base.at(share)
        return self if base is self.base else replace(self, base=base)


def unbiased(transition: Transition | Matrix | None = None, base: str | Term | Loss = "ce") -> Unbiased:
    """Σ_j P⁻¹[y, j]·base_j, whose mean over the noisy label y is the base loss of the true one.

    With cross-entropy as its base this is the loss "backward", apart from two options. "backward" takes class weights,
    of the true classes; here they are refused. Label smoothing spreads over true classes there, over labels here.

    Some entries of P⁻¹ are negative. With an unbounded base such as cross-entropy, the loss of a row therefore has no
    lower bound.

    Args:
        transition: The label noise P, a `Transition` or its matrix.
        base: The loss to estimate, or its name.
    """
    noise, term = known_noise("unbiased", transition), base_term(base)
    if term.num_classes not in (None, noise.num_classes):
        raise InputError(f"the noise is for {noise.num_classes} classes, the base loss for {term.num_classes}.")
    return Unbiased(noise, term, Constant(noise.inverse.T.contiguous()))


def natarajan(transition: Transition | Matrix | None = None, base: str | Term | Loss = "ce") -> Unbiased:
    """The estimator for two classes, as published; cross-entropy on two logits is the logistic loss of the paper."""
    term = unbiased(transition, base)
    if term.num_classes != 2:
        raise InputError(
            f"natarajan is for two classes, the noise has {term.num_classes}; the same estimator for any number is "
            'called "unbiased".'
        )
    return term


register(
    "unbiased",
    unbiased,
    "unbiased estimator of any base loss, from the inverse of the noise",
    Facts(
        symmetric=False,
        bounded=False,
        role="both",
        source="van Rooyen & Williamson 2018",
        needs="the transition matrix",
    ),
)
register(
    "natarajan",
    natarajan,
    "unbiased estimator of a base loss for two classes",
    Facts(symmetric=False, bounded=False, role="both", source="Natarajan et al. 2013", needs="the transition matrix"),
)
