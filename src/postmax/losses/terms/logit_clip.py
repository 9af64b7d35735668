"""Clipping the norm of the logits, which bounds every loss of them.

Wei et al., Mitigating memorization of noisy labels by clipping the model prediction, ICML 2023.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.losses.base import Loss
from postmax.losses.catalogue import register
from postmax.losses.facts import Facts, Preset
from postmax.losses.options import check_positive
from postmax.losses.term import LabelledLogits, Term
from postmax.losses.term_options import base_term
from postmax.transition import Transition


@dataclass(frozen=True)
class LogitClip(Term):
    """The term that `logit_clip` makes from checked options."""

    base: Term
    bound: float

    @property
    def mixes_rows(self) -> bool:
        """Whether the base loss mixes rows."""
        return self.base.mixes_rows

    @property
    def num_classes(self) -> int | None:
        """The number of classes of the base loss, if it fixes one."""
        return self.base.num_classes

    @property
    def transition(self) -> Transition | None:
        """The noise that the base loss knows."""
        return self.base.transition

    @property
    def corrects_posterior(self) -> bool:
        """Whether the base loss removes the noise in `posterior`."""
        return self.base.corrects_posterior

    @property
    def meaning(self) -> object:
        """The bound, and what the clipped logits mean to the base loss."""
        return "clipped", self.bound, self.base.meaning

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        return self.base(LabelledLogits(self.clip(inputs.logits), inputs.labels, inputs.others))

    def clip(self, logits: Tensor) -> Tensor:
        """Return the logits (…, C), scaled so that their norm is at most the bound."""
        masked = logits == -torch.inf
        z = logits.double().masked_fill(masked, 0.0)
        square = (z * z).sum(-1, keepdim=True)
        long = square > self.bound**2
        scale = torch.where(long, self.bound * torch.where(long, square, 1.0).rsqrt(), 1.0)
        return (z * scale).masked_fill(masked, -torch.inf).to(logits.dtype)

    def logits_of(self, posterior: Tensor) -> Tensor:  # noqa: ARG002  (it never gets that far)
        """Raise an error: clipped logits cannot express every posterior."""
        raise InputError(
            "logit-clip bounds the logits, so it cannot express every posterior: choose another loss for a method that "
            "changes the posterior."
        )

    def posterior(self, logits: Tensor) -> Tensor:
        """Return the posterior of the base loss for the clipped logits."""
        return self.base.posterior(self.clip(logits))

    def label_posterior(self, logits: Tensor) -> Tensor:
        """Return the label posterior of the base loss for the clipped logits."""
        return self.base.label_posterior(self.clip(logits))

    def refuse_weights(self) -> None:
        """Raise an error if the base loss refuses class weights."""
        self.base.refuse_weights()

    def at(self, share: float) -> Term:
        """Return the term with the base loss after this share of the training."""
        base = self.base.at(share)
        return self if base is self.base else replace(self, base=base)


def logit_clip(base: str | Term | Loss = "ce", bound: float = 1 / 1.5) -> LogitClip:
    """A base loss of the logits z·min(1, τ/‖z‖).

    This is the formula of the paper. The authors' code compares ‖z‖ with 1/τ in place of τ, and so jumps unless τ = 1.
    A logit of −∞ removes its class: it stays −∞ and has no part in the norm. The clipping is computed in float64,
    because its derivative removes the direction of z, and float32 loses the digits of the rest.

    Args:
        base: The loss of the clipped logits, or its name.
        bound: The bound τ. The paper chooses 1/τ among 0.1, 0.5, 1, 1.5, …, 5 for each kind of noise, on held-out noisy
            labels. The default is the one setting that the authors print (1/τ = 1.5, for CIFAR-10 with half of the
            labels symmetric).
    """
    check_positive(bound=bound)
    return LogitClip(base_term(base), bound)


register(
    "logit-clip",
    logit_clip,
    "a base loss of logits whose norm is clipped",
    Facts(symmetric=False, bounded=True, role="active", source="Wei et al. 2023"),
    presets={"cifar10": Preset({"bound": 1 / 1.5}, "the authors' README, for 50 % symmetric noise")},
    aliases=("logit-clipping",),
)
