"""The loss of a cost as a function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import torch
from torch import Tensor

from postmax import costs
from postmax.costs.base import Cost, Rows
from postmax.functional.rows import Contract, check_contract, reduced_loss, uniform
from postmax.registry import resolve


def cost_loss(logits: Tensor, target: Tensor, cost: str | Cost, **contract: Unpack[Contract]) -> Tensor:
    """The loss of logits and targets for a cost such as "gce", "nce+rce" or `costs.get("gce", q=0.5)`.

    Args:
        logits: (C), (N, C) or (N, C, d1, …, dk).
        target: Class indices or class probabilities.
        cost: A cost or its name.
        contract: weight, ignore_index, reduction and label_smoothing of `nn.CrossEntropyLoss`.

    Example:
        >>> logits, labels = torch.tensor([[2.0, -1.0, 0.5]]), torch.tensor([0])
        >>> cost_loss(logits, labels, "ce") == torch.nn.functional.cross_entropy(logits, labels)
        tensor(True)
    """
    check_contract(contract)
    rows = CostRows(resolve(cost, Cost, costs.get))  # type: ignore[type-abstract]
    if contract.get("weight") is not None:
        rows.cost.refuse_weights()
    return reduced_loss(rows, logits, target, **contract)


@dataclass(frozen=True)
class CostRows:
    """What a row costs; see `postmax.functional.rows.RowLoss`."""

    cost: Cost
    classes: int | None = None

    @property
    def num_classes(self) -> int | None:
        """The number of classes, if it was given or an option of the cost fixes it."""
        return self.cost.num_classes if self.classes is None else self.classes

    def of_labels(self, rows: Tensor, labels: Tensor, keep: Tensor | None, reduction: str) -> Tensor:
        """The price of each row's label."""
        index = labels.unsqueeze(-1)
        others = None
        if self.cost.mixes_rows:
            others = _others(torch.zeros_like(rows).scatter(-1, index, 1.0), keep)
        losses = self.cost(Rows(rows, index, others))
        return losses.squeeze(-1) if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()

    def of_distributions(self, rows: Tensor, q: Tensor, weight: Tensor | None, keep: Tensor | None) -> Tensor:
        """The mean price of each row's labels."""
        others = _others(q, keep) if self.cost.mixes_rows else None
        prices = self.cost(Rows(rows, None, others))
        # A label of probability 0 counts for nothing, whatever it costs; 0·∞ would be NaN.
        prices = prices.masked_fill(prices.isinf() & (q == 0), 0.0)
        return ((q if weight is None else q * weight) * prices).sum(-1)

    def background(self, rows: Tensor) -> Tensor:
        """Label smoothing spreads evenly."""
        return uniform(rows)


def _others(q: Tensor, keep: Tensor | None) -> Tensor:
    """How the labels of the other rows that count are distributed, for every row; zero where there is none."""
    own = q if keep is None else torch.where(keep.unsqueeze(-1), q, 0.0)
    others = own.reshape(-1, q.shape[-1]).sum(0) - own
    # Their mass and not their number: a label distribution of zeros is a row that is left out.
    mass = others.sum(-1, keepdim=True)
    return others / torch.where(mass > 0, mass, 1.0)
