"""Negative learning: what the class is not.

Kim et al., NLNL: Negative learning for noisy labels, ICCV 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from postmax.costs.base import Cost, Rows
from postmax.costs.catalogue import Facts, register
from postmax.costs.stable import log_rest, sum_of_others


@dataclass(frozen=True)
class NLNL(Cost):
    """The mean of −log(1 − p_k) over all classes k other than the label.

    As published, one such class is drawn at random for every row. This is the expectation of that loss: it has the same
    minimum, no randomness and a gradient of less variance. It is the first of the published stages; selecting rows and
    training on pseudo-labels follow in the paper. With two classes it is cross-entropy.
    """

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        return sum_of_others(log_rest(rows.log_p), rows.labels) / (1 - rows.num_classes)


register(
    "nlnl",
    NLNL,
    "negative learning: mean of −log(1 − p) over the other classes",
    Facts(symmetric=False, bounded=False, role="passive", source="Kim et al. 2019"),
    aliases=("negative-learning",),
)
