"""Normalised focal loss.

Ma et al., Normalized loss functions for deep learning with noisy labels, ICML 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from postmax.losses.catalogue import register
from postmax.losses.facts import Facts, Preset
from postmax.losses.numerics.normalised import normalised
from postmax.losses.options import check_not_negative
from postmax.losses.term import LabelledLogits, Term
from postmax.losses.terms.focal import focal_of_all


@dataclass(frozen=True)
class NFL(Term):
    """(1 − p_y)^γ log p_y / Σ_k (1 − p_k)^γ log p_k.

    The derivative is that of the whole fraction. The published code differentiates as if (1 − p)^γ were constants.

    Args:
        gamma: At least 0. With 0 the loss is normalised cross-entropy.
    """

    gamma: float = 0.5

    def __post_init__(self) -> None:
        check_not_negative(gamma=self.gamma)

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        return normalised(inputs, inputs.once(focal_of_all, self.gamma))


register(
    "nfl",
    NFL,
    "normalised focal loss",
    Facts(symmetric=True, bounded=True, role="active", source="Ma et al. 2020"),
    presets={name: Preset({"gamma": 0.5}, "APL code") for name in ("cifar10", "cifar100")},
    aliases=("normalised-focal",),
)
