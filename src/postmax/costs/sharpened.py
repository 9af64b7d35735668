"""f-PML that makes up its mind: the posterior of the labels first, then its mode.

f-PML of any f learns how probable every label is, wrong ones included, and what it learns late are single wrong labels.
The objective correction for symmetric noise has the remedy: it takes the noise out of the posterior. Noise that is only
*assumed*, a share η of the labels, leaves the most probable label alone wherever that is ahead by 1 − η or more.

For Pearson's f and the softmax p the corrected loss is `η·(1 − p_y) + (1 − η)·‖onehot − p‖²/2`, up to a factor and a
constant: the Brier score without noise, the absolute error where all is noise. The number of classes drops out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor
from torch.nn.functional import one_hot

from postmax import divergences
from postmax.costs.base import Cost, Rows, positive
from postmax.costs.catalogue import Facts, register
from postmax.costs.schedule import check_start, is_share
from postmax.costs.stable import complement, sum_of_others
from postmax.errors import InputError
from postmax.functional.fpml import ObjectiveRows
from postmax.functional.objective import Objective


@dataclass(frozen=True)
class LabelPosterior(Cost):
    """f-PML as a cost: what it says of labels, it says through the same kernels as `FPMLLoss`."""

    objective: Objective

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        if rows.labels is None:
            kernel, s = self.objective.kernel, self.objective.log_ratio(rows.logits)
            return kernel.penalty_sum(s).unsqueeze(-1) - kernel.score(s)
        labels, loss = rows.labels.squeeze(-1), ObjectiveRows(self.objective)
        found = loss.of_labels(rows.logits, labels, None, "none")
        if found is None:
            found = loss.of_distributions(rows.logits, one_hot(labels, rows.num_classes).to(rows.logits), None, None)
        return found.unsqueeze(-1)


@dataclass(frozen=True)
class SharpenedPML(Cost):
    """scale·(η·(1 − p) + (1 − η)·‖onehot − p‖²/2), after a first part of the training with the f-PML of a divergence.

    This is the f-PML of Pearson's f, corrected for the noise η. What the softmax says in the end is which label is the
    most probable, not how probable it is.

    Args:
        divergence: The f of the first part.
        assumed: The share η of labels that are taken to be drawn at random, below 1.
        start: The share of the training after which they are.
        scale: Of the second part, so that one learning rate suits both.
    """

    divergence: str = "sl:0.25"
    assumed: float = 0.9
    start: float = 0.5
    scale: float = 0.5

    def __post_init__(self) -> None:
        positive(scale=self.scale)
        check_start(self.start)
        if not is_share(self.assumed) or self.assumed == 1:
            raise InputError(f"assumed is a share of the labels, from 0 to below 1, got {self.assumed!r}.")
        divergences.get(self.divergence)

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        missed = complement(rows.s)
        brier = missed**2 + sum_of_others((2 * rows.log_p).exp(), rows.labels)
        return self.scale * (self.assumed * missed + (1 - self.assumed) / 2 * brier)

    @cached_property
    def _first(self) -> LabelPosterior:
        return LabelPosterior(Objective.build(self.divergence, "softmax"))

    def at(self, share: float) -> Cost:
        """The posterior before `start`."""
        return self if share >= self.start else self._first


register(
    "sharpened-pml",
    SharpenedPML,
    "f-PML, then its most probable label: Pearson's f corrected for noise that is assumed",
    Facts(symmetric=False, bounded=True, role="both", source="postmax; the objective correction of the f-PML paper"),
)
