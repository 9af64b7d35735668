"""Reverse cross-entropy: label and prediction swap roles.

Wang et al., Symmetric cross entropy for robust learning with noisy labels, ICCV 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from postmax.costs.base import Cost, Rows, positive
from postmax.costs.catalogue import Facts, register
from postmax.costs.stable import complement


@dataclass(frozen=True)
class RCE(Cost):
    """−Σ_k p_k log q_k = A·(1 − p_y), where log 0 of the one-hot label q is read as −A.

    Args:
        A: The published code clips the label at 1e-4, so A = 9.21 (not the 4 of the paper's text).
    """

    A: float = -math.log(1e-4)

    def __post_init__(self) -> None:
        positive(A=self.A)

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        return self.A * complement(rows.s)


register(
    "rce",
    RCE,
    "reverse cross-entropy A·(1 − p)",
    Facts(symmetric=True, bounded=True, role="passive", source="Wang et al. 2019"),
    aliases=("reverse-cross-entropy",),
)
