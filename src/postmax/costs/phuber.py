"""Partially Huberised cross-entropy: linear in the probability of labels that are improbable.

Menon, Rawat, Reddi and Kumar, Can gradient clipping mitigate label noise?, ICLR 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from postmax.costs.base import Cost, Rows, positive
from postmax.costs.catalogue import Facts, Preset, register
from postmax.errors import InputError


@dataclass(frozen=True)
class PHuberCE(Cost):
    """−log p of the label's probability p if it is above 1/τ, and its tangent log τ + 1 − τp if not.

    Args:
        tau: Above 1: the largest derivative in p. The paper chooses between 2 and 10.
    """

    tau: float = 10.0

    def __post_init__(self) -> None:
        positive(tau=self.tau)
        if self.tau <= 1:
            raise InputError(f"tau must be above 1, got {self.tau!r}.")

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        log_tau = math.log(self.tau)
        return torch.where(rows.s > -log_tau, -rows.s, log_tau + 1 - self.tau * rows.s.exp())


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
