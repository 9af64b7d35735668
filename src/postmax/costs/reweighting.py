"""Importance reweighting: a label counts as much as it is likely to be the true one.

Liu and Tao, Classification with noisy labels by importance reweighting, TPAMI 2016; for many classes and with the
network's own posterior as used since, by Xia et al., Are anchor points really indispensable in label-noise learning?,
NeurIPS 2019.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from postmax.costs.base import Cost, Rows
from postmax.costs.catalogue import Facts, register
from postmax.costs.noise import known_noise, no_weights
from postmax.errors import InputError
from postmax.transition import Transition
from postmax.transition.constant import Constant
from postmax.transition.matrix import Matrix


@dataclass(frozen=True)
class Reweighting(Cost):
    """β·(−log p_y) with the weight β = p_y/(Pᵀp)_y, through which no gradient flows.

    The cost is bounded where every class can be mistaken for the label, since β is then 0 where p_y is.

    Class weights are refused: they would weigh noisy labels.

    Args:
        transition: The label noise P, a `Transition` or its matrix; no class may be mislabelled always.
    """

    transition: Transition | Matrix | None = None
    _noise: Transition = field(init=False, repr=False, compare=False)
    _log_columns: Constant = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        noise = known_noise("reweighting", self.transition)
        if not (noise.matrix.diagonal() > 0).all():
            k = int(noise.matrix.diagonal().argmin())
            raise InputError(f"class {k} never keeps its label: the weight p/(Pᵀp) of that label has no bound.")
        object.__setattr__(self, "transition", noise)
        object.__setattr__(self, "_noise", noise)
        object.__setattr__(self, "_log_columns", Constant(noise.matrix.T.log().contiguous()))

    @property
    def num_classes(self) -> int:
        """K."""
        return self._noise.num_classes

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        weight = self._weight(rows)
        # A label with a logit of −∞ has no weight and costs nothing; 0·∞ would be NaN.
        return -weight * rows.s.masked_fill((weight == 0) & (rows.s == -torch.inf), 0.0)

    def _weight(self, rows: Rows) -> Tensor:
        """(…, m) 1/β = Σ_i P[i, y]·p_i/p_y from differences of logits, in which nothing cancels."""
        # Differences of −∞ would be NaN.
        logits = rows.logits.detach().clamp_min(torch.finfo(rows.logits.dtype).min / 4)
        columns = self._log_columns.like(rows.logits)
        if rows.labels is not None:
            index = rows.labels.unsqueeze(-1).expand(*rows.labels.shape, rows.num_classes)
            columns = columns.expand(*rows.labels.shape[:-1], -1, -1).gather(-2, index)
        differences = logits.unsqueeze(-2) - rows.of(logits).unsqueeze(-1)
        return torch.exp(-(columns + differences).logsumexp(-1))

    def refuse_weights(self) -> None:
        """They would weigh noisy labels."""
        raise no_weights("reweighting")

    @property
    def reading(self) -> object:
        """The noise."""
        return "noisy", self._noise, None

    def label_posterior(self, logits: Tensor) -> Tensor:
        """The posterior sent through the noise."""
        return self._noise.corrupt_posterior(self.posterior(logits))


register(
    "reweighting",
    Reweighting,
    "importance reweighting: cross-entropy weighted by p_y/(Pᵀp)_y",
    Facts(symmetric=False, bounded=True, role="active", source="Liu & Tao 2016", needs="the transition matrix"),
    aliases=("importance-reweighting",),
)
