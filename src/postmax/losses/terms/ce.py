"""Cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.term import LabelledLogits, Term


@dataclass(frozen=True)
class CE(Term):
    """−log p of the label's probability p."""

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        return -inputs.label_log_p


register(
    "ce",
    CE,
    "cross-entropy −log p, which is f-PML with KL and softmax",
    Facts(symmetric=False, bounded=False, role="active", source="torch.nn.CrossEntropyLoss"),
    aliases=("cross-entropy",),
)
