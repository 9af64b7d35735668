"""The confidence regulariser of CORES².

Cheng et al., Learning with instance-dependent label noise: A sample sieve approach, ICLR 2021.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.losses.catalogue import register
from postmax.losses.facts import Facts, Preset
from postmax.losses.options import check_positive
from postmax.losses.schedule import checked_ramp, ramped
from postmax.losses.term import LabelledLogits, Term
from postmax.losses.terms.ce import CE
from postmax.transition.constant import Constant


@dataclass(frozen=True)
class CORES(Term):
    """The term that `cores` makes from checked options."""

    beta: float
    prior: tuple[float, ...] | None
    ramp: tuple[float, float]
    prior_tensor: Constant | None = field(repr=False, compare=False)

    @property
    def num_classes(self) -> int | None:
        """The length of the prior, if there is one."""
        return None if self.prior is None else len(self.prior)

    @property
    def when_it_diverges(self) -> str:
        """Why a training with this term may diverge and what to do; see `Loss`."""
        return (
            "cores rewards confidence in any class, and the reward has no bound. A smaller weight of that part "
            "(loss.beta=0.5) and a smaller learning rate keep it in check."
        )

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        if self.prior_tensor is None:
            confidence = inputs.log_p.mean(-1, keepdim=True)
        else:
            confidence = (inputs.log_p * self.prior_tensor.like(inputs.log_p)).sum(-1, keepdim=True)
        return self.beta * confidence - inputs.label_log_p

    def at(self, share: float) -> Term:
        """Return the term with the β that the ramp has reached; cross-entropy if that is 0."""
        factor = ramped(share, self.ramp)
        if factor == 0:
            return CE()
        return self if factor == 1 else replace(self, beta=factor * self.beta)


def cores(beta: float = 2.0, prior: Sequence[float] | None = None, ramp: tuple[float, float] = (0.1, 0.4)) -> CORES:
    """−log p_y − β·Σ_k π_k(−log p_k), which rewards confidence in any class.

    This is the loss only. The sieve of the paper, which leaves out rows and follows the labels that are left with its
    prior, is not part of it.

    Args:
        beta: The β after the end of the ramp. From 1 on, the loss has no lower bound.
        prior: The distribution π of the noisy labels; uniform by default.
        ramp: The shares of the training between which β rises linearly from 0. Published as epochs 10 to 40 of 100.
    """
    check_positive(beta=beta)
    shares = None if prior is None else _checked_prior(prior)
    tensor = None if shares is None else Constant(torch.tensor(shares, dtype=torch.float64))
    return CORES(beta, shares, checked_ramp(ramp), tensor)


def _checked_prior(prior: Sequence[float]) -> tuple[float, ...]:
    try:
        shares = tuple(float(share) for share in prior)
    except (TypeError, ValueError) as error:
        raise InputError(f"prior must be the shares of the classes, numbers, got {prior!r}.") from error
    if len(shares) < 2 or not all(share >= 0 for share in shares) or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise InputError(f"prior must be the shares of the classes and sum to 1, got {prior!r}.")
    return shares


register(
    "cores",
    cores,
    "cross-entropy with the confidence regulariser of CORES²",
    Facts(symmetric=False, bounded=False, role="both", source="Cheng et al. 2021"),
    presets={name: Preset({"beta": 2.0}, "the authors' code") for name in ("cifar10", "cifar100")},
)
