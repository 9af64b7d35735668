"""Partially Huberised cross-entropy, which is linear in the probability of improbable labels.

Menon, Rawat, Reddi and Kumar, Can gradient clipping mitigate label noise?, ICLR 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.losses.catalogue import register
from postmax.losses.facts import Facts, Preset
from postmax.losses.options import check_positive
from postmax.losses.term import LabelledLogits, Term


@dataclass(frozen=True)
class PHuberCE(Term):
    """−log p of the label's probability p if it is above 1/τ, and its tangent log τ + 1 − τp if not.

    Args:
        tau: The largest derivative in p, above 1. The paper chooses between 2 and 10.
    """

    tau: float = 10.0

    def __post_init__(self) -> None:
        check_positive(tau=self.tau)
        if self.tau <= 1:
            raise InputError(f"tau must be above 1, got {self.tau!r}.")

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        log_tau = math.log(self.tau)
        return torch.where(
            inputs.label_log_p > -log_tau, -inputs.label_log_p, log_tau + 1 - self.tau * inputs.label_log_p.exp()
        )


register(
    "phuber-ce",
    PHuberCE,
    "partially Huberised cross-entropy −log p, linear below p = 1/τ",
    Facts(symmetric=False, bounded=True, role="active", source="Menon et al. 2020"),
    presets={
        "cifar10": Preset({"tau": 2.0}, "Menon et al. 2020"),
        "cifar100": Preset(
            {"tau": 10.0}, "Menon et al. 2020 (Mizrahi et al. 2021, who repeated it, do better with 50)"
        ),
    },
    aliases=("partially-huberised-cross-entropy",),
)
