"""Networks of any shape, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class Lanes(nn.Module):
    """Networks of any shape as lanes: from rows (B, …) to outputs (S, B, K).

    Args:
        answers: The networks, or answers of training strategies that consist of several.

    Attributes:
        form: What is needed to make them again: the name of the network, the number of its inputs, and what each answer
            consists of (see `postmax.methods.parts.answers`). None if that cannot be said.
        why_not: Why it cannot be said.
    """

    form: Mapping[str, Any] | None = None
    why_not: str = ""

    def __init__(self, answers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.answers = nn.ModuleList(answers)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the outputs of every network."""
        return torch.stack([answer(rows) for answer in self.answers])
