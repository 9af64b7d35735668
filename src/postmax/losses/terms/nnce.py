"""Normalised negative cross-entropy: the largest possible loss minus the loss of the label, normalised.

Ye et al., Active negative loss functions for learning with noisy labels, NeurIPS 2023 (ANL).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from postmax.errors import InputError
from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.numerics.normalised import remainder
from postmax.losses.term import LabelledLogits, Term


def check_floor(floor: object) -> None:
    """Check that the floor is a probability between 0 and 1."""
    if isinstance(floor, bool) or not isinstance(floor, int | float) or not 0 < floor < 1:
        raise InputError(f"floor must be a probability between 0 and 1, got {floor!r}.")


def check_floor_for(floor: float, classes: int) -> None:
    """Check that not all classes can lie below the floor, because the divisor would then be 0."""
    if floor * classes >= 1:
        raise InputError(
            f"floor must be below 1/{classes} for {classes} classes, so that one is above it, got {floor!r}."
        )


@dataclass(frozen=True)
class NNCE(Term):
    """1 − (A + log p_y)/Σ_k (A + log p_k) with A = −log floor, where no p counts as less than the floor.

    A class below the floor has no gradient, because the loss is flat there by definition. With fewer than 1/floor
    classes at least one class is above the floor, and the sum is positive.

    Args:
        floor: Below 1/C for C classes. The published code has 1e-7, hence A = 16.1.
    """

    floor: float = 1e-7

    def __post_init__(self) -> None:
        check_floor(self.floor)

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        check_floor_for(self.floor, inputs.num_classes)
        return remainder(inputs, (inputs.log_p - math.log(self.floor)).relu_())


register(
    "nnce",
    NNCE,
    "normalised negative cross-entropy 1 − (A + log p_y)/Σ (A + log p_k)",
    Facts(symmetric=True, bounded=True, role="passive", source="Ye et al. 2023"),
    aliases=("normalised-negative-cross-entropy",),
)
