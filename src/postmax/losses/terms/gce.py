"""Generalised cross-entropy, which lies between cross-entropy (q → 0) and the mean absolute error (q = 1).

Zhang and Sabuncu, Generalized cross entropy loss for training deep neural networks with noisy labels, NeurIPS 2018.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from postmax.errors import InputError
from postmax.losses.catalogue import register
from postmax.losses.facts import Facts, Preset
from postmax.losses.numerics.stable import complement
from postmax.losses.options import check_positive
from postmax.losses.term import LabelledLogits, Term


def check_power(q: float) -> None:
    """Check that q is in (0, 1]."""
    check_positive(q=q)
    if q > 1:
        raise InputError(f"q must lie in (0, 1], from cross-entropy to the mean absolute error, got {q!r}.")


@dataclass(frozen=True)
class GCE(Term):
    """(1 − p^q)/q of the label's probability p.

    Args:
        q: In (0, 1]. The larger it is, the less an improbable label counts.
    """

    q: float = 0.7

    def __post_init__(self) -> None:
        check_power(self.q)

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        return complement(self.q * inputs.label_log_p) / self.q


_SOURCE = "Zhang & Sabuncu 2018; used unchanged by APL and ANL"
register(
    "gce",
    GCE,
    "generalised cross-entropy (1 − p^q)/q",
    Facts(symmetric=False, bounded=True, role="active", source="Zhang & Sabuncu 2018"),
    presets={name: Preset({"q": 0.7}, _SOURCE) for name in ("cifar10", "cifar100", "webvision")},
    aliases=("generalised-cross-entropy", "lq"),
)
