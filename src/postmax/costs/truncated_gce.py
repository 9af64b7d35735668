"""Generalised cross-entropy that gives up labels the model finds improbable.

Zhang and Sabuncu, Generalized cross entropy loss for training deep neural networks with noisy labels, NeurIPS 2018,
section 3.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from postmax.costs.base import Cost, Rows, positive
from postmax.costs.catalogue import Facts, Preset, register
from postmax.costs.gce import GCE, check_power
from postmax.costs.schedule import check_start
from postmax.errors import InputError


@dataclass(frozen=True)
class TruncatedGCE(Cost):
    """(1 − p^q)/q of the label's probability p, but constant where p is below k.

    At the start of a training every p is, so for its first part the cost is `GCE` (`at` tells); asked for no share of
    the training, it is truncated. Each row is decided on at each step. The published code decides every ten epochs,
    with the model that was best so far on the test set; this never looks at test.

    Args:
        q: In (0, 1]; the larger, the less an improbable label counts.
        k: Between 0 and 1; labels less probable than this have no gradient.
        start: The share of the training from which on labels are given up, from 0 to 1.
    """

    q: float = 0.7
    k: float = 0.5
    start: float = 1 / 3

    def __post_init__(self) -> None:
        check_power(self.q)
        positive(k=self.k)
        if self.k >= 1:
            raise InputError(f"k must be a probability below 1, got {self.k!r}.")
        check_start(self.start)

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        given_up = -math.expm1(self.q * math.log(self.k)) / self.q
        return torch.where(rows.s >= math.log(self.k), GCE(self.q)(rows), given_up)

    def at(self, share: float) -> Cost:
        """`GCE` until `start`."""
        return self if share >= self.start else GCE(self.q)


register(
    "truncated-gce",
    TruncatedGCE,
    "generalised cross-entropy, constant below p = k",
    Facts(symmetric=False, bounded=True, role="active", source="Zhang & Sabuncu 2018"),
    presets={
        "cifar10": Preset(
            {"q": 0.7, "k": 0.5, "start": 40 / 120}, "an unofficial implementation: from epoch 40 of 120"
        ),
        "cifar100": Preset(
            {"q": 0.7, "k": 0.5, "start": 80 / 150}, "an unofficial implementation: from epoch 80 of 150"
        ),
    },
    aliases=("truncated-lq", "tgce"),
)
