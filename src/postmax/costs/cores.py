"""The confidence regulariser of CORES².

Cheng et al., Learning with instance-dependent label noise: A sample sieve approach, ICLR 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from postmax.costs.base import Cost, Rows, positive
from postmax.costs.catalogue import Facts, Preset, register
from postmax.costs.ce import CE
from postmax.costs.schedule import check_ramp, ramped
from postmax.errors import InputError
from postmax.transition.constant import Constant


@dataclass(frozen=True)
class CORES(Cost):
    """−log p_y − β·Σ_k π_k(−log p_k), which rewards confidence in any class at all.

    This is the loss only. The sieve that leaves out rows, with a prior that follows the labels that are left, decides
    on rows and not on prices: it is another matter.

    Args:
        beta: β from the end of the ramp on; from 1 on the loss has no lower bound.
        prior: π, how the noisy labels are distributed; evenly by default.
        ramp: The shares of the training between which β rises from 0, linearly; published as epochs 10 to 40 of 100.
    """

    beta: float = 2.0
    prior: tuple[float, ...] | None = None
    ramp: tuple[float, float] = (0.1, 0.4)
    _prior: Constant | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        positive(beta=self.beta)
        object.__setattr__(self, "ramp", check_ramp(self.ramp))
        if self.prior is None:
            return
        try:
            prior = tuple(float(share) for share in self.prior)
        except (TypeError, ValueError) as error:
            raise InputError(f"prior must be the shares of the classes, numbers, got {self.prior!r}.") from error
        if len(prior) < 2 or not all(share >= 0 for share in prior) or not math.isclose(sum(prior), 1, abs_tol=1e-6):
            raise InputError(f"prior must be the shares of the classes and sum to 1, got {self.prior!r}.")
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "_prior", Constant(torch.tensor(prior, dtype=torch.float64)))

    @property
    def num_classes(self) -> int | None:
        """The length of the prior, if there is one."""
        return None if self.prior is None else len(self.prior)

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        if self._prior is None:
            confidence = rows.log_p.mean(-1, keepdim=True)
        else:
            confidence = (rows.log_p * self._prior.like(rows.log_p)).sum(-1, keepdim=True)
        return self.beta * confidence - rows.s

    def at(self, share: float) -> Cost:
        """With β where the ramp has got to."""
        factor = ramped(share, self.ramp)
        if factor == 0:
            return CE()
        return self if factor == 1 else replace(self, beta=factor * self.beta)


register(
    "cores",
    CORES,
    "cross-entropy with the confidence regulariser of CORES²",
    Facts(symmetric=False, bounded=False, role="both", source="Cheng et al. 2021"),
    presets={name: Preset({"beta": 2.0}, "the authors' code") for name in ("cifar10", "cifar100")},
)
