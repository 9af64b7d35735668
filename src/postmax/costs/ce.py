"""Cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from postmax.costs.base import Cost, Rows
from postmax.costs.catalogue import Facts, register


@dataclass(frozen=True)
class CE(Cost):
    """−log p of the label's probability p."""

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        return -rows.s


register(
    "ce",
    CE,
    "cross-entropy −log p, which is f-PML with KL and softmax",
    Facts(symmetric=False, bounded=False, role="active", source="torch.nn.CrossEntropyLoss"),
    aliases=("cross-entropy",),
)
