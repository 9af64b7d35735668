"""Asymmetric exponential loss.

Zhou et al., Asymmetric loss functions for learning with noisy labels, ICML 2021 (ALFs).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from postmax.losses.catalogue import register
from postmax.losses.facts import Facts, Preset
from postmax.losses.options import check_positive
from postmax.losses.term import LabelledLogits, Term


@dataclass(frozen=True)
class AEL(Term):
    """e^(−p/a) of the label's probability p.

    Args:
        a: Positive. The larger it is, the closer the loss is to linear.
    """

    a: float = 2.5

    def __post_init__(self) -> None:
        check_positive(a=self.a)

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        return (inputs.label_log_p.exp() / -self.a).exp()


register(
    "ael",
    AEL,
    "asymmetric exponential loss e^(−p/a)",
    Facts(symmetric=False, bounded=True, role="active", source="Zhou et al. 2021"),
    presets={name: Preset({"a": 2.5}, "ALFs code") for name in ("cifar10", "cifar100")},
    aliases=("asymmetric-exponential",),
)
