"""Asymmetric exponential loss.

Zhou et al., Asymmetric loss functions for learning with noisy labels, ICML 2021 (ALFs).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from postmax.costs.base import Cost, Rows, positive
from postmax.costs.catalogue import Facts, Preset, register


@dataclass(frozen=True)
class AEL(Cost):
    """e^(−p/a) of the label's probability p.

    Args:
        a: Positive; the larger, the closer to linear.
    """

    a: float = 2.5

    def __post_init__(self) -> None:
        positive(a=self.a)

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        return (rows.s.exp() / -self.a).exp()


register(
    "ael",
    AEL,
    "asymmetric exponential loss e^(−p/a)",
    Facts(symmetric=False, bounded=True, role="active", source="Zhou et al. 2021"),
    presets={name: Preset({"a": 2.5}, "ALFs code") for name in ("cifar10", "cifar100")},
    aliases=("asymmetric-exponential",),
)
