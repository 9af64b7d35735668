"""Label smoothing, also with a negative rate.

Wei et al., To smooth or not? When label smoothing meets noisy labels, ICML 2022.
Szegedy et al., Rethinking the inception architecture for computer vision, CVPR 2016 (smoothing itself).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from postmax.errors import InputError
from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.schedule import check_start
from postmax.losses.term import LabelledLogits, Term
from postmax.losses.terms.ce import CE


@dataclass(frozen=True)
class SmoothedCE(Term):
    """(1 − r)·(−log p_y) + r·mean_k(−log p_k).

    With r < 0 the loss has no lower bound, and training with it from the start diverges. It was published for use after
    a warm-up with cross-entropy, with a tiny learning rate (1e-6).

    Args:
        rate: The rate r, below 1.
        start: The share of the training before which the loss is plain cross-entropy.
    """

    rate: float = 0.1
    start: float = 0.0

    def __post_init__(self) -> None:
        rate: object = self.rate
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not -math.inf < rate < 1:
            raise InputError(f"rate must be a number below 1, got {self.rate!r}: at 1 the label no longer counts.")
        check_start(self.start)

    @property
    def when_it_diverges(self) -> str:
        """Why a training with this term may diverge and what to do; see `Loss`."""
        if self.rate >= 0:
            return ""
        return (
            "A negative rate rewards ever smaller probabilities of the other classes, so the loss has no lower bound. "
            "It was published with a learning rate of 1e-6 after a warm-up. A rate closer to 0 (loss.rate=-0.2) also "
            "keeps it in check."
        )

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        return (self.rate - 1) * inputs.label_log_p - self.rate * inputs.log_p.mean(-1, keepdim=True)

    def at(self, share: float) -> Term:
        """Return cross-entropy before `start`."""
        return self if share >= self.start else CE()


register(
    "label-smoothing",
    SmoothedCE,
    "cross-entropy with labels smoothed by rate",
    Facts(symmetric=False, bounded=False, role="both", source="Szegedy et al. 2016"),
)
register(
    "negative-label-smoothing",
    partial(SmoothedCE, rate=-1.0, start=0.5),
    "cross-entropy with labels smoothed by a negative rate, after a warm-up",
    Facts(symmetric=False, bounded=False, role="both", source="Wei et al. 2022"),
    aliases=("nls", "generalised-label-smoothing"),
)
