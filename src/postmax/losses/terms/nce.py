"""Normalised cross-entropy. Every loss divided by its sum over all labels is symmetric.

Ma et al., Normalized loss functions for deep learning with noisy labels, ICML 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.numerics.normalised import normalised
from postmax.losses.term import LabelledLogits, Term


@dataclass(frozen=True)
class NCE(Term):
    """log p_y / Σ_k log p_k."""

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        return normalised(inputs, inputs.log_p)


register(
    "nce",
    NCE,
    "normalised cross-entropy log p_y / Σ log p_k",
    Facts(symmetric=True, bounded=True, role="active", source="Ma et al. 2020"),
    aliases=("normalised-cross-entropy",),
)
