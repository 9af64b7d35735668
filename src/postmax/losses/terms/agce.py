"""Asymmetric generalised cross-entropy: GCE of a + p instead of p.

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
class AGCE(Term):
    """[(a + 1)^q − (a + p)^q]/q of the label's probability p, computed from 1 − p.

    Args:
        a: Positive. The larger it is, the closer the loss is to linear.
        q: A positive power.
    """

    a: float = 0.6
    q: float = 0.6

    def __post_init__(self) -> None:
        check_positive(a=self.a, q=self.q)
        if self.q * math.log(self.a + 1) > LARGEST_LOG:
            raise InputError(f"(a + 1)^q must be below 1e34, to stay in range, got a = {self.a!r} and q = {self.q!r}.")

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        missing = (-complement(inputs.label_log_p) / (self.a + 1)).log1p()  # log (a + p)/(a + 1)
        return -math.pow(self.a + 1, self.q) / self.q * expm1(self.q * missing)


register(
    "agce",
    AGCE,
    "asymmetric GCE [(a + 1)^q − (a + p)^q]/q",
    Facts(symmetric=False, bounded=True, role="active", source="Zhou et al. 2021"),
    presets={name: Preset({"a": 0.6, "q": 0.6}, "ALFs code") for name in ("cifar10", "cifar100")},
    aliases=("asymmetric-gce",),
)
