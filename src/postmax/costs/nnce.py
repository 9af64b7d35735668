"""Normalised negative cross-entropy: the loss of the label turned upside down, then normalised.

Ye et al., Active negative loss functions for learning with noisy labels, NeurIPS 2023 (ANL).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from postmax.costs.base import Cost, Rows
from postmax.costs.catalogue import Facts, register
from postmax.costs.normalised import remainder
from postmax.errors import InputError


def check_floor(floor: object) -> None:
    """Refuse what is no probability between 0 and 1."""
    if isinstance(floor, bool) or not isinstance(floor, int | float) or not 0 < floor < 1:
        raise InputError(f"floor must be a probability between 0 and 1, got {floor!r}.")


def check_floor_for(floor: float, classes: int) -> None:
    """Refuse a floor below which all classes may lie: nothing would be left to divide by."""
    if floor * classes >= 1:
        raise InputError(
            f"floor must be below 1/{classes} for {classes} classes, so that one is above it, got {floor!r}."
        )


@dataclass(frozen=True)
class NNCE(Cost):
    """1 − (A + log p_y)/Σ_k (A + log p_k) with A = −log floor, where no p counts as less than the floor.

    A class below the floor has no gradient: the loss is flat there, by definition. With fewer than 1/floor classes
    one of them is above it, and the sum is positive.

    Args:
        floor: Below 1/C for C classes. The published code has 1e-7, hence A = 16.1.
    """

    floor: float = 1e-7

    def __post_init__(self) -> None:
        check_floor(self.floor)

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        check_floor_for(self.floor, rows.num_classes)
        return remainder(rows, (rows.log_p - math.log(self.floor)).relu_())


register(
    "nnce",
    NNCE,
    "normalised negative cross-entropy 1 − (A + log p_y)/Σ (A + log p_k)",
    Facts(symmetric=True, bounded=True, role="passive", source="Ye et al. 2023"),
    aliases=("normalised-negative-cross-entropy",),
)
