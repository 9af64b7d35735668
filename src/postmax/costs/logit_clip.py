"""Clipping the norm of the logits, which bounds any loss of them.

Wei et al., Mitigating memorization of noisy labels by clipping the model prediction, ICML 2023.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from postmax.costs.base import Cost, Rows, positive
from postmax.costs.catalogue import Facts, Preset, register
from postmax.costs.noise import base_cost


@dataclass(frozen=True)
class LogitClip(Cost):
    """A base cost of the logits z·min(1, τ/‖z‖).

    This is the formula of the paper. The authors' code compares ‖z‖ with 1/τ in place of τ, and so jumps unless τ = 1.
    A logit of −∞ takes its class out: it stays, and does not count in the norm.
    The clipping is done in float64: its derivative removes the direction of z, in which float32 loses what is left.

    Args:
        base: The cost of the clipped logits, or its name.
        bound: τ. The paper chooses 1/τ among 0.1, 0.5, 1, 1.5, …, 5 for each kind of noise, on held-out noisy labels;
            the default is the one setting the authors print (1/τ = 1.5, CIFAR-10 with half of the labels symmetric).
    """

    base: str | Cost = "ce"
    bound: float = 1 / 1.5
    _base: Cost = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        positive(bound=self.bound)
        object.__setattr__(self, "_base", base_cost(self.base))

    @property
    def mixes_rows(self) -> bool:  # type: ignore[override]
        """Whether the base cost does."""
        return self._base.mixes_rows

    @property
    def num_classes(self) -> int | None:
        """That of the base cost."""
        return self._base.num_classes

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        return self._base(Rows(self.clip(rows.logits), rows.labels, rows.others))

    def clip(self, logits: Tensor) -> Tensor:
        """The logits (…, C), no longer than the bound."""
        masked = logits == -torch.inf
        z = logits.double().masked_fill(masked, 0.0)
        square = (z * z).sum(-1, keepdim=True)
        long = square > self.bound**2
        scale = torch.where(long, self.bound * torch.where(long, square, 1.0).rsqrt(), 1.0)
        return (z * scale).masked_fill(masked, -torch.inf).to(logits.dtype)

    @property
    def reading(self) -> object:
        """The bound, and how the base cost reads what is within."""
        return "clipped", self.bound, self._base.reading

    def posterior(self, logits: Tensor) -> Tensor:
        """That of the base cost, for the clipped logits."""
        return self._base.posterior(self.clip(logits))

    def label_posterior(self, logits: Tensor) -> Tensor:
        """That of the base cost, for the clipped logits."""
        return self._base.label_posterior(self.clip(logits))

    def refuse_weights(self) -> None:
        """Raise if the base cost does."""
        self._base.refuse_weights()

    def at(self, share: float) -> Cost:
        """With the base cost at this share of the training."""
        base = self._base.at(share)
        return self if base is self._base else replace(self, base=base)


register(
    "logit-clip",
    LogitClip,
    "a base cost of logits whose norm is clipped",
    Facts(symmetric=False, bounded=True, role="active", source="Wei et al. 2023"),
    presets={"cifar10": Preset({"bound": 1 / 1.5}, "the authors' README, for 50 % symmetric noise")},
    aliases=("logit-clipping",),
)
