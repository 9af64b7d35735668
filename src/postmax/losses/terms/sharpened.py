"""f-PML that learns the posterior of the labels first and then its most probable label.

f-PML of every f learns the probability of each label, wrong labels included; late in training it learns single wrong
labels. The objective correction for symmetric noise removes noise from the posterior. If the noise is only *assumed* to
be a share η of the labels, the most probable label stays the same wherever it leads by 1 − η or more.

For Pearson's f and the softmax p the corrected loss is `η·(1 − p_y) + (1 − η)·‖onehot − p‖²/2`, up to a factor and a
constant. Without noise that is the Brier score; if all labels are noise it is the absolute error. It does not depend on
the number of classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from postmax import divergences
from postmax.errors import InputError
from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.fpml import FPMLTerm
from postmax.losses.numerics.stable import complement, sum_of_others
from postmax.losses.objective import Objective
from postmax.losses.options import check_positive
from postmax.losses.schedule import check_start, is_share
from postmax.losses.term import LabelledLogits, Term


@dataclass(frozen=True)
class SharpenedPML(Term):
    """scale·(η·(1 − p) + (1 − η)·‖onehot − p‖²/2), after a first part of the training with the f-PML of a divergence.

    This is the f-PML of Pearson's f, corrected for the noise η. In the end the softmax says which label is the most
    probable one, but not how probable it is.

    Args:
        divergence: The f of the first part.
        assumed: The share η of the labels that are assumed to be drawn at random, below 1.
        start: The share of the training after which the second part begins.
        scale: The factor of the second part, chosen so that one learning rate suits both parts.
    """

    divergence: str = "sl:0.25"
    assumed: float = 0.9
    start: float = 0.5
    scale: float = 0.5

    def __post_init__(self) -> None:
        check_positive(scale=self.scale)
        check_start(self.start)
        if not is_share(self.assumed) or self.assumed == 1:
            raise InputError(f"assumed is a share of the labels, from 0 to below 1, got {self.assumed!r}.")
        divergences.get(self.divergence)

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        missed = complement(inputs.label_log_p)
        brier = missed**2 + sum_of_others((2 * inputs.log_p).exp(), inputs.labels)
        return self.scale * (self.assumed * missed + (1 - self.assumed) / 2 * brier)

    @cached_property
    def _first(self) -> FPMLTerm:
        return FPMLTerm(Objective.build(self.divergence, "softmax"))

    def at(self, share: float) -> Term:
        """Return the f-PML of the divergence before `start`."""
        return self if share >= self.start else self._first


register(
    "sharpened-pml",
    SharpenedPML,
    "f-PML, then its most probable label: Pearson's f corrected for noise that is assumed",
    Facts(symmetric=False, bounded=True, role="both", source="postmax; the objective correction of the f-PML paper"),
)
