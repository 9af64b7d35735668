"""Maximising an f-divergence between labels that belong to a row and labels that do not.

Wei and Liu, When optimizing f-divergence is robust with label noise, ICLR 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from postmax.costs.base import Cost, Rows
from postmax.costs.catalogue import Facts, register
from postmax.costs.ce import CE
from postmax.costs.schedule import check_start
from postmax.costs.stable import log_rest
from postmax.registry import unknown_name

_LOG_2 = math.log(2)
_Term = Callable[[Tensor], Tensor]
# What the label's own probability p earns, g(p), and what the probability of another row's label costs, f*(g(p)).
_TERMS: dict[str, tuple[_Term, _Term]] = {
    "tv": (lambda p: p.tanh() / 2, lambda p: p.tanh() / 2),
    "js": (lambda p: _LOG_2 - softplus(-p), lambda p: p + softplus(-p) - _LOG_2),
    "kl": (lambda p: p, lambda p: (p - 1).exp()),
    "pearson": (lambda p: p, lambda p: p + p**2 / 4),
    "jeffrey": (lambda p: p, lambda p: p + p**2 / 4 + p**3 / 16),
    "rkl": (lambda p: -p.exp(), lambda p: -1 - p),
    "hellinger": (lambda p: 1 - p.exp(), lambda p: (-p).exp() - 1),
}


@dataclass(frozen=True)
class FDiv(Cost):
    """−g(p_y) + E_k f*(g(p_k)), where k is the label of another row of the batch.

    The softmax probability itself is the variational input, as published. As published, too, the second term takes
    random pairs from two more batches; here it is the mean over all pairs of different rows of the batch.

    g and f* are those of the authors' code. Of these (tv, js, kl, pearson) are conjugate pairs with a g that increases;
    they and jeffrey are the ones the authors used. The others are here to be compared with, not to be trained with:

    - jeffrey: f*(t) = t + t²/4 + t³/16 is the conjugate of (u − 1)·log u up to the third order, not the conjugate
      itself, which needs Lambert's W.
    - rkl and hellinger: conjugate pairs, but with g(p) = −e^p and 1 − e^p, which *decrease*: the loss lowers the
      probability of the label. An increasing g would be that of −p.
    - neyman: g(p) = 1 − e^p decreases as well, and f*(t) = 2 − 2·√(1 − t) is taken of p in place of g(p), so this is no
      conjugate pair either.

    Args:
        divergence: tv, js, kl, pearson, jeffrey, rkl, hellinger or neyman.
        start: The share of the training before which the cost is plain cross-entropy; the authors start from a network
            trained with it, and then use a tenth of its learning rate.
    """

    mixes_rows = True

    divergence: str = "tv"
    start: float = 0.5

    def __post_init__(self) -> None:
        known = (*_TERMS, "neyman")
        if self.divergence not in known:
            raise unknown_name("divergence of the loss f-div", str(self.divergence), known)
        check_start(self.start)

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        assert rows.others is not None  # noqa: S101  (it mixes rows)
        p = rows.log_p.exp()
        if self.divergence == "neyman":  # the root of 1 − p has no derivative at p = 1, but that of log(1 − p) does
            earned, cost = 1 - rows.of(p).exp(), 2 - 2 * torch.exp(log_rest(rows.log_p) / 2)
        else:
            earn, pay = _TERMS[self.divergence]
            earned, cost = earn(rows.of(p)), pay(p)
        return (rows.others * cost).sum(-1, keepdim=True) - earned

    def at(self, share: float) -> Cost:
        """Cross-entropy before `start`."""
        return self if share >= self.start else CE()


register(
    "f-div",
    FDiv,
    "f-divergence between a row's own label and those of other rows",
    Facts(symmetric=False, bounded=True, role="both", source="Wei & Liu 2021"),
    aliases=("f-divergence",),
)
