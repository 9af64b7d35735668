"""Data ambiguation: a class in which the network believes becomes plausible beside the label.

Lienen and Hüllermeier, Mitigating label noise through data ambiguation, AAAI 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.numerics.masks import own_class
from postmax.losses.numerics.odds import log_sum
from postmax.losses.numerics.stable import log_p_and_rest
from postmax.losses.options import check_probability
from postmax.losses.schedule import cosine
from postmax.losses.term import LabelledLogits, Term


@dataclass(frozen=True)
class RDA(Term):
    """KL(t‖p) from the nearest t that gives the plausible classes, {y} and all k with p_k > β, at least 1 − α.

    If p does so already, t is p itself and the loss is 0. Otherwise t is p scaled to 1 − α within the set and to α
    outside. As published, no gradient flows through t. It need not be stopped: t is the nearest, so to first order no
    gradient would flow. Written without t, the loss is (1 − α)·log((1 − α)/S) + α·log(α/(1 − S)) for the probability S
    of the set. This form is exact where p is 0 or 1 and can be differentiated more than once; its gradient is p − t.

    For two classes the loss is bounded. For more classes it is not, while no other class is plausible.

    Args:
        alpha: The probability α that is left for implausible classes.
        beta: The value of β at the end of the training.
        start: The value of β at the start of the training. In between β follows half a cosine.
    """

    alpha: float = 0.1
    beta: float = 0.6
    start: float = 0.75

    def __post_init__(self) -> None:
        check_probability(alpha=self.alpha, beta=self.beta, start=self.start)

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        if inputs.labels is None and self.beta >= 0.5:
            return self._of_all(inputs)
        log_p = inputs.log_p.unsqueeze(-2)
        plausible = own_class(inputs) | (log_p > math.log(self.beta))
        lacking = (log_p.exp() * plausible).sum(-1, keepdim=True) < 1 - self.alpha
        within = log_sum(torch.where(plausible | ~lacking, log_p, -torch.inf))
        without = log_sum(torch.where(~plausible | ~lacking, log_p, -torch.inf))
        return torch.where(lacking, self._loss(within, without), 0.0).squeeze(-1)

    def _of_all(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of every label if at most one class is plausible beside it, without sets of C classes."""
        top = inputs.log_p.argmax(-1, keepdim=True)
        log_p, log_rest = log_p_and_rest(inputs.log_p)
        log_top = log_p.gather(-1, top)
        pair = (log_top > math.log(self.beta)).expand_as(log_p).scatter(-1, top, value=False)
        lacking = log_p.exp() + torch.where(pair, log_top.exp(), 0.0) < 1 - self.alpha
        both = log_sum(torch.stack([log_p, log_top.expand_as(log_p)], -1)).squeeze(-1)
        # The difference 1 − p_top − p_y would lose digits, so it is computed as 1 − p_top times the share that the
        # others have without y. If all others were −∞ they would have no shares, so they are kept finite.
        lowest = torch.finfo(log_p.dtype).min / 2
        others = inputs.log_p.clamp_min(lowest).scatter(-1, top, -torch.inf).log_softmax(-1)
        neither = log_rest.gather(-1, top) + log_p_and_rest(others)[1]
        loss = self._loss(torch.where(pair, both, log_p), torch.where(pair, neither, log_rest))
        return torch.where(lacking, loss, 0.0)

    def _loss(self, within: Tensor, without: Tensor) -> Tensor:
        """Return the loss if the plausible classes have the probability e^within and all others e^without."""
        a, b = self.alpha, 1 - self.alpha
        return a * (math.log(a) - without) + b * (math.log(b) - within)

    def at(self, share: float) -> RDA:
        """Return the term with the β that the cosine has reached."""
        return replace(self, beta=cosine(share, self.start, self.beta))


register(
    "rda",
    RDA,
    "data ambiguation: classes the network believes in become plausible beside the label",
    Facts(symmetric=False, bounded=False, role="both", source="Lienen & Hüllermeier 2024"),
    aliases=("robust-data-ambiguation",),
)
