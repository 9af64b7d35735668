"""The mean absolute error, symmetric and hence robust to symmetric noise, but slow to learn many classes.

Ghosh, Kumar and Sastry, Robust loss functions under label noise for deep neural networks, AAAI 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from postmax.costs.base import Cost, Rows
from postmax.costs.catalogue import Facts, register
from postmax.costs.stable import complement


@dataclass(frozen=True)
class MAE(Cost):
    """1 − p of the label's probability p: half of ‖onehot − p‖₁, as it is used in sums of losses."""

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        return complement(rows.s)


register(
    "mae",
    MAE,
    "mean absolute error 1 − p",
    Facts(symmetric=True, bounded=True, role="passive", source="Ghosh, Kumar & Sastry 2017"),
    aliases=("mean-absolute-error",),
)
