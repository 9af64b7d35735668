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
from postmax.costs.schedule import check_start
from postmax.costs.stable import complement, sum_of_others
from postmax.divergences import Divergence
from postmax.eager import eager
from postmax.errors import InputError
from postmax.functional.kernels import HardRows, SoftRows


@dataclass(frozen=True)
class LabelPosterior(Cost):
    """ΣF(p) − T(p_y): f-PML with the softmax link and without correction, as a cost."""

    divergence: Divergence

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        if rows.labels is None:
            return self.divergence.penalty_sum(rows.log_p).unsqueeze(-1) - self.divergence.score(rows.s)
        labels = rows.labels.squeeze(-1)
        found = eager(HardRows, rows.log_p, labels, self.divergence, 1.0, "none")
        if found is None:
            q = one_hot(labels, rows.num_classes).to(rows.log_p)
            found = SoftRows.apply(rows.log_p, q, q.sum(-1), self.divergence, None)  # type: ignore[no-untyped-call]
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
        _check_assumed(self.assumed)
        divergences.get(self.divergence)

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        missed = complement(rows.s)
        brier = missed**2 + sum_of_others((2 * rows.log_p).exp(), rows.labels)
        return self.scale * (self.assumed * missed + (1 - self.assumed) / 2 * brier)

    @cached_property
    def _first(self) -> LabelPosterior:
        return LabelPosterior(divergences.get(self.divergence))

    def at(self, share: float) -> Cost:
        """The posterior before `start`."""
        return self if share >= self.start else self._first


def _check_assumed(share: object) -> None:
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 1:
        raise InputError(f"assumed is a share of the labels, from 0 to below 1, got {share!r}.")


register(
    "sharpened-pml",
    SharpenedPML,
    "f-PML, then its most probable label: Pearson's f corrected for noise that is assumed",
    Facts(symmetric=False, bounded=True, role="both", source="postmax; the objective correction of the f-PML paper"),
)
