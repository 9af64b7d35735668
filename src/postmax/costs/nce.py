"""Normalised cross-entropy: any loss divided by its sum over all labels is symmetric.

Ma et al., Normalized loss functions for deep learning with noisy labels, ICML 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from postmax.costs.base import Cost, Rows
from postmax.costs.catalogue import Facts, register
from postmax.costs.normalised import normalised


@dataclass(frozen=True)
class NCE(Cost):
    """log p_y / Σ_k log p_k."""

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        return normalised(rows, rows.log_p)


register(
    "nce",
    NCE,
    "normalised cross-entropy log p_y / Σ log p_k",
    Facts(symmetric=True, bounded=True, role="active", source="Ma et al. 2020"),
    aliases=("normalised-cross-entropy",),
)
