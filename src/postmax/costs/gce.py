"""Generalised cross-entropy: between cross-entropy (q → 0) and the mean absolute error (q = 1).

Zhang and Sabuncu, Generalized cross entropy loss for training deep neural networks with noisy labels, NeurIPS 2018.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from postmax.costs.base import Cost, Rows, positive
from postmax.costs.catalogue import Facts, Preset, register
from postmax.costs.stable import complement
from postmax.errors import InputError


def check_power(q: float) -> None:
    """Refuse what is not in (0, 1]."""
    positive(q=q)
    if q > 1:
        raise InputError(f"q must lie in (0, 1], from cross-entropy to the mean absolute error, got {q!r}.")


@dataclass(frozen=True)
class GCE(Cost):
    """(1 − p^q)/q of the label's probability p.

    Args:
        q: In (0, 1]; the larger, the less an improbable label counts.
    """

    q: float = 0.7

    def __post_init__(self) -> None:
        check_power(self.q)

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        return complement(self.q * rows.s) / self.q


_SOURCE = "Zhang & Sabuncu 2018; used unchanged by APL and ANL"
register(
    "gce",
    GCE,
    "generalised cross-entropy (1 − p^q)/q",
    Facts(symmetric=False, bounded=True, role="active", source="Zhang & Sabuncu 2018"),
    presets={name: Preset({"q": 0.7}, _SOURCE) for name in ("cifar10", "cifar100", "webvision")},
    aliases=("generalised-cross-entropy", "lq"),
)
