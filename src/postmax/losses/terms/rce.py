"""Reverse cross-entropy: cross-entropy with label and prediction exchanged.

Wang et al., Symmetric cross entropy for robust learning with noisy labels, ICCV 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.numerics.stable import complement
from postmax.losses.options import check_positive
from postmax.losses.term import LabelledLogits, Term


@dataclass(frozen=True)
class RCE(Term):
    """−Σ_k p_k log q_k = A·(1 − p_y), where −A stands for log 0 of the one-hot label q.

    Args:
        A: A positive number. The published code clips the label at 1e-4, so A = 9.21 (the text of the paper says 4).
    """

    A: float = -math.log(1e-4)

    def __post_init__(self) -> None:
        check_positive(A=self.A)

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        return self.A * complement(inputs.label_log_p)


register(
    "rce",
    RCE,
    "reverse cross-entropy A·(1 − p)",
    Facts(symmetric=True, bounded=True, role="passive", source="Wang et al. 2019"),
    aliases=("reverse-cross-entropy",),
)
