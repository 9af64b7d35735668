"""The focal loss: cross-entropy that cares less about labels which are probable already.

Lin et al., Focal loss for dense object detection, ICCV 2017. Among robust losses it is a baseline, with γ = 0.5:
Ma et al., Normalized loss functions for deep learning with noisy labels, ICML 2020 (APL).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from postmax.costs.base import Cost, Rows
from postmax.costs.catalogue import Facts, Preset, register
from postmax.costs.stable import log_p_and_rest
from postmax.errors import InputError


def focal(log_p: Tensor, gamma: float) -> Tensor:
    """−(1 − p)^γ log p of every class, from the log-probabilities (…, C) of all.

    1 − p is taken from the other classes where p is close to 1; a power of 1 − e^log p would have a derivative of 0·∞.
    """
    log_p, log_rest = log_p_and_rest(log_p)
    return -(gamma * log_rest).exp() * log_p


def check_gamma(gamma: object) -> None:
    """Refuse what is not a number ≥ 0."""
    if isinstance(gamma, bool) or not isinstance(gamma, int | float) or not 0 <= gamma < torch.inf:
        raise InputError(f"gamma must be a number ≥ 0, got {gamma!r}.")


@dataclass(frozen=True)
class Focal(Cost):
    """−(1 − p)^γ log p of the label's probability p.

    The derivative is that of the whole product. The code published with APL takes (1 − p)^γ for a constant when it
    differentiates, which is another method.

    Args:
        gamma: At least 0, where it is cross-entropy; 0.5 is APL's, Lin et al. use 2.
    """

    gamma: float = 0.5

    def __post_init__(self) -> None:
        check_gamma(self.gamma)

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        return rows.of(focal(rows.log_p, self.gamma))


register(
    "focal",
    Focal,
    "focal loss −(1 − p)^γ log p",
    Facts(symmetric=False, bounded=False, role="active", source="Lin et al. 2017"),
    presets={
        name: Preset({"gamma": 0.5}, "APL and ANL code (there without its derivative)")
        for name in ("cifar10", "cifar100")
    },
    aliases=("fl", "focal-loss"),
)
