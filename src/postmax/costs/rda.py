"""Data ambiguation: where the network believes in another class than the label, both are plausible.

Lienen and Hüllermeier, Mitigating label noise through data ambiguation, AAAI 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from postmax.costs.base import Cost, Rows
from postmax.costs.catalogue import Facts, register
from postmax.costs.masks import own_class
from postmax.costs.odds import log_sum
from postmax.costs.schedule import cosine
from postmax.costs.stable import log_p_and_rest
from postmax.errors import InputError


@dataclass(frozen=True)
class RDA(Cost):
    """KL(t‖p) from the nearest t that gives the plausible classes, {y} and all k with p_k > β, at least 1 − α.

    That t is p itself, at no cost, if p does so already; else it is p scaled to 1 − α within the set and to α outside.
    As published, no gradient flows through t. It need not be stopped: t is the nearest, so that to first order nothing
    would flow. Written without t, the cost is (1 − α)·log((1 − α)/S) + α·log(α/(1 − S)) for the probability S of the
    set, which is exact where p is 0 or 1 and differentiable more than once; its gradient is p − t.

    For two classes the cost is bounded; for more it is not, while no other class is plausible.

    Args:
        alpha: α, what is left for implausible classes.
        beta: What β tends to towards the end of training.
        start: β at its beginning; from there it follows half a cosine.
    """

    alpha: float = 0.1
    beta: float = 0.6
    start: float = 0.75

    def __post_init__(self) -> None:
        for name in ("alpha", "beta", "start"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
                raise InputError(f"{name} must be a number between 0 and 1, got {value!r}.")

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        if rows.labels is None and self.beta >= 0.5:
            return self._of_all(rows)
        log_p = rows.log_p.unsqueeze(-2)
        plausible = own_class(rows) | (log_p > math.log(self.beta))
        lacking = (log_p.exp() * plausible).sum(-1, keepdim=True) < 1 - self.alpha
        within = log_sum(torch.where(plausible | ~lacking, log_p, -torch.inf))
        without = log_sum(torch.where(~plausible | ~lacking, log_p, -torch.inf))
        return torch.where(lacking, self._price(within, without), 0.0).squeeze(-1)

    def _of_all(self, rows: Rows) -> Tensor:
        """The price of every label where at most one class is plausible beside it, without sets of C for each of C."""
        top = rows.log_p.argmax(-1, keepdim=True)
        log_p, log_rest = log_p_and_rest(rows.log_p)
        log_top = log_p.gather(-1, top)
        pair = (log_top > math.log(self.beta)).expand_as(log_p).scatter(-1, top, value=False)
        lacking = log_p.exp() + torch.where(pair, log_top.exp(), 0.0) < 1 - self.alpha
        both = log_sum(torch.stack([log_p, log_top.expand_as(log_p)], -1)).squeeze(-1)
        # 1 − p_top − p_y would cancel: it is 1 − p_top times what the others leave among themselves. Were they all −∞,
        # they would have no shares.
        lowest = torch.finfo(log_p.dtype).min / 2
        others = rows.log_p.clamp_min(lowest).scatter(-1, top, -torch.inf).log_softmax(-1)
        neither = log_rest.gather(-1, top) + log_p_and_rest(others)[1]
        price = self._price(torch.where(pair, both, log_p), torch.where(pair, neither, log_rest))
        return torch.where(lacking, price, 0.0)

    def _price(self, within: Tensor, without: Tensor) -> Tensor:
        """What it costs that the plausible classes have e^within, and all others e^without."""
        a, b = self.alpha, 1 - self.alpha
        return a * (math.log(a) - without) + b * (math.log(b) - within)

    def at(self, share: float) -> RDA:
        """With β where the cosine has got to."""
        return replace(self, beta=cosine(share, self.start, self.beta))


register(
    "rda",
    RDA,
    "data ambiguation: classes the network believes in become plausible beside the label",
    Facts(symmetric=False, bounded=False, role="both", source="Lienen & Hüllermeier 2024"),
    aliases=("robust-data-ambiguation",),
)
