"""Importance reweighting: the weight of a label is the probability that it is the true one.

Liu and Tao, Classification with noisy labels by importance reweighting, TPAMI 2016; for many classes and with the
network's own posterior as used since, by Xia et al., Are anchor points really indispensable in label-noise learning?,
NeurIPS 2019.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.term import LabelledLogits, Term
from postmax.losses.term_options import known_noise, no_weights
from postmax.transition import Transition
from postmax.transition.constant import Constant
from postmax.transition.matrix import Matrix


@dataclass(frozen=True)
class Reweighting(Term):
    """The term that `reweighting` makes from checked options."""

    noise: Transition
    log_columns: Constant = field(repr=False, compare=False)

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
        """The noise."""
        return "noisy", self.noise, None

    def logits_of(self, posterior: Tensor) -> Tensor:
        """Return logits (…, C) whose softmax is the given posterior."""
        return posterior.log()

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        weight = self._weight(inputs)
        # A label with a logit of −∞ has weight 0, and its loss is 0. Without this, 0·∞ would be NaN.
        without_loss = (weight == 0) & (inputs.label_log_p == -torch.inf)
        return -weight * inputs.label_log_p.masked_fill(without_loss, 0.0)

    def _weight(self, inputs: LabelledLogits) -> Tensor:
        """Return β (…, m), from 1/β = Σ_i P[i, y]·p_i/p_y and differences of logits, in which no digits are lost."""
        # Differences of −∞ would be NaN.
        logits = inputs.logits.detach().clamp_min(torch.finfo(inputs.logits.dtype).min / 4)
        columns = self.log_columns.like(inputs.logits)
        if inputs.labels is not None:
            index = inputs.labels.unsqueeze(-1).expand(*inputs.labels.shape, inputs.num_classes)
            columns = columns.expand(*inputs.labels.shape[:-1], -1, -1).gather(-2, index)
        differences = logits.unsqueeze(-2) - inputs.pick(logits).unsqueeze(-1)
        return torch.exp(-(columns + differences).logsumexp(-1))

    def refuse_weights(self) -> None:
        """Raise an error, because class weights would weigh noisy labels."""
        raise no_weights("reweighting")


def reweighting(transition: Transition | Matrix | None = None) -> Reweighting:
    """β·(−log p_y) with the weight β = p_y/(Pᵀp)_y, through which no gradient flows.

    The loss is bounded if every class can be mistaken for the label, because β is then 0 where p_y is 0. Class weights
    are refused, because they would weigh noisy labels.

    Args:
        transition: The label noise P, a `Transition` or its matrix. Every class must keep its label at least sometimes.
    """
    noise = known_noise("reweighting", transition)
    if not (noise.matrix.diagonal() > 0).all():
        k = int(noise.matrix.diagonal().argmin())
        raise InputError(f"class {k} never keeps its label: the weight p/(Pᵀp) of that label has no bound.")
    return Reweighting(noise, Constant(noise.matrix.T.log().contiguous()))


register(
    "reweighting",
    reweighting,
    "importance reweighting: cross-entropy weighted by p_y/(Pᵀp)_y",
    Facts(symmetric=False, bounded=True, role="active", source="Liu & Tao 2016", needs="the transition matrix"),
    aliases=("importance-reweighting",),
)
