"""Normalised negative focal loss.

Ye et al., Active negative loss functions for learning with noisy labels, NeurIPS 2023 (ANL).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from postmax.costs.base import Cost, Rows
from postmax.costs.catalogue import Facts, register
from postmax.costs.focal import check_gamma, focal_of_all
from postmax.costs.nnce import check_floor, check_floor_for
from postmax.costs.normalised import remainder


@dataclass(frozen=True)
class NNFL(Cost):
    """1 − (A − l_y)/Σ_k (A − l_k) of the focal losses l_k = −(1 − p_k)^γ log p_k, where no p counts as less than floor.

    A is the focal loss of the floor, so that a class below it has neither a share nor a gradient. Differentiated as a
    whole; the published code takes the factors (1 − p)^γ for constants.

    Args:
        gamma: At least 0, where it is the normalised negative cross-entropy.
        floor: Below 1/C for C classes. The published code has 1e-7.
    """

    gamma: float = 0.5
    floor: float = 1e-7

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        check_floor(self.floor)

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        check_floor_for(self.floor, rows.num_classes)
        highest = -math.exp(self.gamma * math.log1p(-self.floor)) * math.log(self.floor)
        return remainder(rows, (highest - rows.once(focal_of_all, self.gamma)).relu())


register(
    "nnfl",
    NNFL,
    "normalised negative focal loss",
    Facts(symmetric=True, bounded=True, role="passive", source="Ye et al. 2023"),
    aliases=("normalised-negative-focal",),
)
