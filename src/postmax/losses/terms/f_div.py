"""Maximising an f-divergence between the labels of a row and the labels of other rows.

Wei and Liu, When optimizing f-divergence is robust with label noise, ICLR 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.numerics.stable import log_rest
from postmax.losses.schedule import check_start
from postmax.losses.term import LabelledLogits, Term
from postmax.losses.terms.ce import CE
from postmax.registry import unknown_name

_LOG_2 = math.log(2)
_Formula = Callable[[Tensor], Tensor]
# The reward g(p) for the probability p of the row's own label, and the penalty f*(g(p)) for that of another row's.
_FORMULAS: dict[str, tuple[_Formula, _Formula]] = {
    "tv": (lambda p: p.tanh() / 2, lambda p: p.tanh() / 2),
    "js": (lambda p: _LOG_2 - softplus(-p), lambda p: p + softplus(-p) - _LOG_2),
    "kl": (lambda p: p, lambda p: (p - 1).exp()),
    "pearson": (lambda p: p, lambda p: p + p**2 / 4),
    "jeffrey": (lambda p: p, lambda p: p + p**2 / 4 + p**3 / 16),
    "rkl": (lambda p: -p.exp(), lambda p: -1 - p),
    "hellinger": (lambda p: 1 - p.exp(), lambda p: (-p).exp() - 1),
}
_NEYMAN = "neyman"
_FALLING = ("rkl", "hellinger")
NAMES = (*_FORMULAS, _NEYMAN)
"""The names of the divergences."""


def rising_pair(divergence: str) -> tuple[_Formula, _Formula]:
    """Return a reward g(p) that rises with p, and its penalty f*(g(p)), both as functions of a probability.

    These are the published formulas, with three exceptions. For rkl, hellinger and neyman the published g falls, so
    that the labels would be unlearnt. Here p is replaced by −p in it, and f* is applied to that g.

    Args:
        divergence: One of `NAMES`.

    Raises:
        UnknownNameError: If there is no such divergence.

    Example:
        >>> reward, penalty = rising_pair("rkl")
        >>> reward(torch.tensor([0.0, 1.0])), penalty(torch.tensor([0.0, 1.0]))
        (tensor([-1.0000, -0.3679]), tensor([-1.,  0.]))
    """
    _check_name(divergence)
    if divergence == _NEYMAN:
        return lambda p: 1 - (-p).exp(), lambda p: 2 - 2 * (-p / 2).exp()
    reward, penalty = _FORMULAS[divergence]
    if divergence in _FALLING:
        return lambda p: reward(-p), lambda p: penalty(-p)
    return reward, penalty


@dataclass(frozen=True)
class FDiv(Term):
    """−g(p_y) + E_k f*(g(p_k)), where k is the label of another row of the batch.

    As in the paper, the softmax probability itself is the variational input. In the paper the second part takes random
    pairs from two more batches; here it is the mean over all pairs of different rows of the batch.

    g and f* are those of the authors' code. tv, js, kl and pearson are conjugate pairs with an increasing g. The
    authors used these four and jeffrey. The others are here for comparison only and should not be used for training:

    - jeffrey: f*(t) = t + t²/4 + t³/16 is the conjugate of (u − 1)·log u up to the third order. The conjugate itself
      needs Lambert's W.
    - rkl and hellinger: conjugate pairs, but g(p) = −e^p and g(p) = 1 − e^p *decrease*, so the loss lowers the
      probability of the label. An increasing g would be that of −p.
    - neyman: g(p) = 1 − e^p decreases as well, and f*(t) = 2 − 2·√(1 − t) is applied to p in place of g(p), so this is
      not a conjugate pair.

    Args:
        divergence: tv, js, kl, pearson, jeffrey, rkl, hellinger or neyman.
        start: The share of the training before which the loss is plain cross-entropy. The authors start from a network
            that was trained with it, and then use a tenth of its learning rate.
    """

    divergence: str = "tv"
    start: float = 0.5

    def __post_init__(self) -> None:
        _check_name(self.divergence)
        check_start(self.start)

    @property
    def mixes_rows(self) -> bool:
        """True: a row is compared with the labels of the other rows."""
        return True

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        assert inputs.others is not None  # noqa: S101  (given to every term that mixes rows)
        p = inputs.log_p.exp()
        if self.divergence == _NEYMAN:  # √(1 − p) has no derivative at p = 1, but e^(log(1 − p)/2) does
            reward, penalty = 1 - inputs.pick(p).exp(), 2 - 2 * torch.exp(log_rest(inputs.log_p) / 2)
        else:
            rewarded, penalised = _FORMULAS[self.divergence]
            reward, penalty = rewarded(inputs.pick(p)), penalised(p)
        return (inputs.others * penalty).sum(-1, keepdim=True) - reward

    def at(self, share: float) -> Term:
        """Return cross-entropy before `start`."""
        return self if share >= self.start else CE()


def _check_name(divergence: object) -> None:
    if divergence not in NAMES:
        raise unknown_name("divergence of f-div", str(divergence), NAMES)


register(
    "f-div",
    FDiv,
    "f-divergence between a row's own label and those of other rows",
    Facts(symmetric=False, bounded=True, role="both", source="Wei & Liu 2021"),
    aliases=("f-divergence",),
)
