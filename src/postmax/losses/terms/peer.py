"""The peer loss: agreement with the labels of other rows is agreement by chance and is not rewarded.

Liu and Guo, Peer loss functions: Learning from noisy labels without knowing noise rates, ICML 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.options import check_positive
from postmax.losses.schedule import checked_ramp, ramped
from postmax.losses.term import LabelledLogits, Term
from postmax.losses.terms.ce import CE


@dataclass(frozen=True)
class Peer(Term):
    """The term that `peer` makes from checked options."""

    alpha: float
    ramp: tuple[float, float]

    @property
    def mixes_rows(self) -> bool:
        """True: a row is compared with the labels of the other rows."""
        return True

    @property
    def when_it_diverges(self) -> str:
        """Why a training with this term may diverge and what to do; see `Loss`."""
        return (
            "peer rewards whatever makes the labels of other rows improbable, so it has no lower bound. A smaller "
            "weight of that part (loss.alpha=0.2) and a smaller learning rate keep it in check."
        )

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        assert inputs.others is not None  # noqa: S101  (given to every term that mixes rows)
        # A class with a logit of −∞ adds nothing if no other row has that label. Without this, 0·∞ would be NaN.
        absent = (inputs.others == 0) & (inputs.log_p == -torch.inf)
        log_p = inputs.log_p.masked_fill(absent, 0.0)
        return self.alpha * (inputs.others * log_p).sum(-1, keepdim=True) - inputs.label_log_p

    def at(self, share: float) -> Term:
        """Return the term with the α that the ramp has reached; cross-entropy if that is 0."""
        factor = ramped(share, self.ramp)
        if factor == 0:
            return CE()
        return self if factor == 1 else replace(self, alpha=factor * self.alpha)


def peer(alpha: float = 1.0, ramp: tuple[float, float] = (0.1, 0.4)) -> Peer:
    """−log p_y − α·E_k(−log p_k), where k is the label of another row of the batch.

    In the paper the second part pairs a random row with the label of another random row, from two more batches and a
    second pass through the network. Here it is the mean over *all* pairs of different rows of the batch. That is the
    expectation of the published form, without randomness and without more batches or passes. The loss has no lower
    bound.

    Args:
        alpha: The α after the end of the ramp.
        ramp: The shares of the training between which α rises linearly from 0. The published schedules differ with the
            noise; all begin with cross-entropy alone.
    """
    check_positive(alpha=alpha)
    return Peer(alpha, checked_ramp(ramp))


register(
    "peer",
    peer,
    "peer loss: cross-entropy minus that of other rows' labels",
    Facts(symmetric=False, bounded=False, role="both", source="Liu & Guo 2020"),
    aliases=("peer-loss",),
)
