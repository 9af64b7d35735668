"""Normalised negative focal loss.

Ye et al., Active negative loss functions for learning with noisy labels, NeurIPS 2023 (ANL).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.numerics.normalised import remainder
from postmax.losses.options import check_not_negative
from postmax.losses.term import LabelledLogits, Term
from postmax.losses.terms.focal import focal_of_all
from postmax.losses.terms.nnce import check_floor, check_floor_for


@dataclass(frozen=True)
class NNFL(Term):
    """1 − (A − l_y)/Σ_k (A − l_k) of the focal losses l_k = −(1 − p_k)^γ log p_k, where no p counts as less than floor.

    A is the focal loss of the floor, so that a class below it has neither a share nor a gradient. The derivative is
    that of the whole fraction. The published code differentiates as if (1 − p)^γ were constants.

    Args:
        gamma: At least 0. With 0 the loss is normalised negative cross-entropy.
        floor: Below 1/C for C classes. The published code has 1e-7.
    """

    gamma: float = 0.5
    floor: float = 1e-7

    def __post_init__(self) -> None:
        check_not_negative(gamma=self.gamma)
        check_floor(self.floor)

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        check_floor_for(self.floor, inputs.num_classes)
        highest = -math.exp(self.gamma * math.log1p(-self.floor)) * math.log(self.floor)
        return remainder(inputs, (highest - inputs.once(focal_of_all, self.gamma)).relu())


register(
    "nnfl",
    NNFL,
    "normalised negative focal loss",
    Facts(symmetric=True, bounded=True, role="passive", source="Ye et al. 2023"),
    aliases=("normalised-negative-focal",),
)
