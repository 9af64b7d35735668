"""The peer loss: agreeing with the labels of other rows is agreeing by chance, and is not rewarded.

Liu and Guo, Peer loss functions: Learning from noisy labels without knowing noise rates, ICML 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from postmax.costs.base import Cost, Rows, positive
from postmax.costs.catalogue import Facts, register
from postmax.costs.ce import CE
from postmax.costs.schedule import check_ramp, ramped


@dataclass(frozen=True)
class Peer(Cost):
    """−log p_y − α·E_k(−log p_k), where k is the label of another row of the batch.

    As published, the second term pairs a random row with the label of another random row, from two more batches and a
    second pass through the network. Here it is the mean over *all* pairs of different rows of the batch: the
    expectation of the published term, without randomness, further batches or passes. The loss has no lower bound.

    Args:
        alpha: α from the end of the ramp on.
        ramp: The shares of the training between which α rises from 0, linearly. The published schedules differ with
            the noise; all begin with cross-entropy alone.
    """

    mixes_rows = True

    alpha: float = 1.0
    ramp: tuple[float, float] = (0.1, 0.4)

    def __post_init__(self) -> None:
        positive(alpha=self.alpha)
        object.__setattr__(self, "ramp", check_ramp(self.ramp))

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        assert rows.others is not None  # noqa: S101  (it mixes rows)
        # A class with a logit of −∞ costs nothing if no other row has that label; 0·∞ would be NaN.
        absent = (rows.others == 0) & (rows.log_p == -torch.inf)
        log_p = rows.log_p.masked_fill(absent, 0.0)
        return self.alpha * (rows.others * log_p).sum(-1, keepdim=True) - rows.s

    def at(self, share: float) -> Cost:
        """With α where the ramp has got to."""
        factor = ramped(share, self.ramp)
        if factor == 0:
            return CE()
        return self if factor == 1 else replace(self, alpha=factor * self.alpha)


register(
    "peer",
    Peer,
    "peer loss: cross-entropy minus that of other rows' labels",
    Facts(symmetric=False, bounded=False, role="both", source="Liu & Guo 2020"),
    aliases=("peer-loss",),
)
