"""The mean absolute error. It is symmetric, hence robust to symmetric noise, but learns many classes slowly.

Ghosh, Kumar and Sastry, Robust loss functions under label noise for deep neural networks, AAAI 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.numerics.stable import complement
from postmax.losses.term import LabelledLogits, Term


@dataclass(frozen=True)
class MAE(Term):
    """1 − p of the label's probability p: half of ‖onehot − p‖₁, as it is used in sums of losses."""

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        return complement(inputs.label_log_p)


register(
    "mae",
    MAE,
    "mean absolute error 1 − p",
    Facts(symmetric=True, bounded=True, role="passive", source="Ghosh, Kumar & Sastry 2017"),
    aliases=("mean-absolute-error",),
)
