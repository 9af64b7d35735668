"""Generalised cross-entropy that gives up labels which the model finds improbable.

Zhang and Sabuncu, Generalized cross entropy loss for training deep neural networks with noisy labels, NeurIPS 2018,
section 3.3.
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
from postmax.losses.schedule import check_start
from postmax.losses.term import LabelledLogits, Term
from postmax.losses.terms.gce import GCE, check_power


@dataclass(frozen=True)
class TruncatedGCE(Term):
    """(1 − p^q)/q of the label's probability p, but constant where p is below k.

    At the start of a training every p is below k. Therefore `at` gives `GCE` for the first part of the training;
    without `at` the loss is truncated. Which rows are given up is decided anew at each step. The published code decides
    every ten epochs, with the model that was best so far on the test set; this loss never uses test data.

    Args:
        q: In (0, 1]. The larger it is, the less an improbable label counts.
        k: Between 0 and 1. Labels less probable than this have no gradient.
        start: The share of the training after which labels are given up, from 0 to 1.
    """

    q: float = 0.7
    k: float = 0.5
    start: float = 1 / 3

    def __post_init__(self) -> None:
        check_power(self.q)
        check_positive(k=self.k)
        if self.k >= 1:
            raise InputError(f"k must be a probability below 1, got {self.k!r}.")
        check_start(self.start)

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        given_up = -math.expm1(self.q * math.log(self.k)) / self.q
        return torch.where(inputs.label_log_p >= math.log(self.k), GCE(self.q)(inputs), given_up)

    def at(self, share: float) -> Term:
        """Return `GCE` before `start`."""
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
