"""Normalised focal loss.

Ma et al., Normalized loss functions for deep learning with noisy labels, ICML 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from postmax.costs.base import Cost, Rows
from postmax.costs.catalogue import Facts, Preset, register
from postmax.costs.focal import check_gamma, focal_of_all
from postmax.costs.normalised import normalised


@dataclass(frozen=True)
class NFL(Cost):
    """(1 − p_y)^γ log p_y / Σ_k (1 − p_k)^γ log p_k.

    Differentiated as a whole; the published code takes the factors (1 − p)^γ for constants.

    Args:
        gamma: At least 0, where it is normalised cross-entropy.
    """

    gamma: float = 0.5

    def __post_init__(self) -> None:
        check_gamma(self.gamma)

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        return normalised(rows, rows.once(focal_of_all, self.gamma))


register(
    "nfl",
    NFL,
    "normalised focal loss",
    Facts(symmetric=True, bounded=True, role="active", source="Ma et al. 2020"),
    presets={name: Preset({"gamma": 0.5}, "APL code") for name in ("cifar10", "cifar100")},
    aliases=("normalised-focal",),
)
