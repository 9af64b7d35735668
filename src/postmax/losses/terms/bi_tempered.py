"""The bi-tempered logistic loss: a bounded logarithm and a softmax with a heavy tail.

Amid, Warmuth, Anil and Koren, Robust bi-tempered logistic loss based on Bregman divergences, NeurIPS 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.numerics.stable import complement
from postmax.losses.options import check_numbers
from postmax.losses.term import LabelledLogits, Term

_STEPS = 8  # four are enough up to t2 = 2 and six up to t2 = 10, for every number of classes
_HOTTEST = 10


@dataclass(frozen=True)
class BiTempered(Term):
    """−log_t1 p_y − (1 − Σ_k p_k^(2−t1))/(2 − t1) for the tempered softmax p = exp_t2(z − λ(z)).

    Here log_t x = (x^(1−t) − 1)/(1 − t), exp_t is its inverse, and λ makes the probabilities sum to one. The loss is
    bounded by 1/(1 − t1). With t1 = t2 = 1 it would be cross-entropy.

    All is computed in float64. λ is found by Newton steps that are not differentiated, followed by two that are; this
    makes its first and second derivatives exact.

    Args:
        t1: In [0, 1). The smaller it is, the smaller is the loss of an improbable label.
        t2: From 1 to 10. The larger it is, the heavier is the tail of the softmax.
    """

    t1: float = 0.8
    t2: float = 1.2

    def __post_init__(self) -> None:
        check_numbers(t1=self.t1, t2=self.t2)
        if not 0 <= self.t1 < 1:
            raise InputError(f"t1 must lie in [0, 1), where the loss is bounded, got {self.t1}.")
        if not 1 <= self.t2 <= _HOTTEST:
            raise InputError(
                f"t2 must lie in [1, {_HOTTEST}], got {self.t2}: above, λ is not found to all digits; below, classes "
                "have no probability at all where their logit is low, and no gradient to get it back."
            )

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        log_p = self.log_probabilities(inputs.logits)
        lack = complement((1 - self.t1) * log_p)  # it is 1 − p^(1−t1), and Σ p·lack is 1 − Σ p^(2−t1)
        losses = inputs.pick(lack) / (1 - self.t1) - (log_p.exp() * lack).sum(-1, keepdim=True) / (2 - self.t1)
        return losses.to(inputs.logits.dtype)

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """Return the logarithms (…, C) of the tempered softmax, in float64."""
        z = logits.double()
        if self.t2 == 1:
            return z.log_softmax(-1)
        below = z.amax(-1, keepdim=True).detach() - z
        fixed = below.detach()
        shift = torch.zeros_like(fixed[..., :1])
        for _ in range(_STEPS):
            shift = self._nearer(shift, fixed)
        for _ in range(2):
            shift = self._nearer(shift, below)
        return self._log_p(shift, below)

    def _log_p(self, shift: Tensor, below: Tensor) -> Tensor:
        """Return the logarithm of exp_t2(−(shift + below))."""
        t = self.t2 - 1
        return -(t * (shift + below)).log1p() / t

    def _nearer(self, shift: Tensor, below: Tensor) -> Tensor:
        """Return the shift after a Newton step for (Σp)^(1−t2) = 1, which is concave and almost linear in it."""
        t, log_p = self.t2 - 1, self._log_p(shift, below)
        log_total = log_p.logsumexp(-1, keepdim=True)
        slope = (self.t2 * (log_p - log_total)).exp().sum(-1, keepdim=True)  # divided by t, because dp = −p^t2
        return shift - (-t * log_total).expm1() / (t * slope)

    @property
    def meaning(self) -> object:
        """The temperature of the softmax; None if it is the ordinary softmax."""
        return None if self.t2 == 1 else ("tempered", self.t2)

    def logits_of(self, posterior: Tensor) -> Tensor:
        """Return log_t2 of the posterior, for which λ is 0."""
        t = self.t2 - 1
        return posterior.log() if t == 0 else -(posterior.pow(-t) - 1) / t

    def posterior(self, logits: Tensor) -> Tensor:
        """Return the tempered softmax."""
        return self.log_probabilities(logits).exp().to(logits.dtype)


register(
    "bi-tempered",
    BiTempered,
    "bi-tempered logistic loss",
    Facts(symmetric=False, bounded=True, role="both", source="Amid et al. 2019"),
)
