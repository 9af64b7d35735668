"""Asymmetric unhinged loss: a power of a − p.

Zhou et al., Asymmetric loss functions for learning with noisy labels, ICML 2021 (ALFs).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from postmax.errors import InputError
from postmax.losses.catalogue import register
from postmax.losses.facts import Facts, Preset
from postmax.losses.numerics.stable import LARGEST_LOG, complement, expm1
from postmax.losses.options import check_positive
from postmax.losses.term import LabelledLogits, Term


@dataclass(frozen=True)
class AUL(Term):
    """[(a − p)^q − (a − 1)^q]/q of the label's probability p, computed from 1 − p.

    Args:
        a: A number above 1.
        q: Positive. With 1 the loss is the mean absolute error.
    """

    a: float = 5.5
    q: float = 3.0

    def __post_init__(self) -> None:
        check_positive(a=self.a, q=self.q)
        if self.a <= 1:
            raise InputError(f"a must be above 1, got {self.a!r}.")
        if self.q * max(math.log(self.a), math.log(self.a / (self.a - 1))) > LARGEST_LOG:
            raise InputError(
                f"a^q and (a/(a − 1))^q must be below 1e34, to stay in range, got a = {self.a!r} and q = {self.q!r}."
            )

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        excess = (complement(inputs.label_log_p) / (self.a - 1)).log1p()  # log (a − p)/(a − 1)
        return math.pow(self.a - 1, self.q) / self.q * expm1(self.q * excess)


register(
    "aul",
    AUL,
    "asymmetric unhinged loss [(a − p)^q − (a − 1)^q]/q",
    Facts(symmetric=False, bounded=True, role="active", source="Zhou et al. 2021"),
    presets={name: Preset({"a": 5.5, "q": 3.0}, "ALFs code") for name in ("cifar10", "cifar100")},
    aliases=("asymmetric-unhinged",),
)
