"""The f-PML row loss `m·Σ_i F(s_i) − Σ_i q_i T(s_i)` with its gradient written out.

Automatic differentiation of the composed formula is slower and, in float32 and below, loses exactly the small gradients
that matter (the derivative of expm1 or of a sigmoid close to one is computed by subtraction). The gradient in s is
`m·F'(s) − q·T'(s)`, and each divergence knows both slopes to full precision. The mass m of a row is c·Σq.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from postmax.divergences import Divergence, KullbackLeibler


def _weighted(q: Tensor, values: Tensor) -> Tensor:
    """q·values, with 0·∞ = 0: a class that is not the label may have an infinite score."""
    return q * torch.where((q == 0) & ~values.isfinite(), 0.0, values)


def _floored(s: Tensor, q: Tensor, log_floor: float | None) -> Tensor:
    """s, but not below the floor where the label weight is negative."""
    return s if log_floor is None else torch.where(q < 0, s.clamp_min(log_floor), s)


class SoftRows(Function):
    """Row losses `m·Σ_i F(s_i) − Σ_i q_i T(s_i)` for label weights q (…, C) and masses m (…).

    With a `log_floor`, entries of q below zero (noise that was taken out) stop counting where s is below it.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(s: Tensor, q: Tensor, m: Tensor, divergence: Divergence, log_floor: float | None) -> Tensor:
        """The row losses."""
        return m * divergence.penalty_sum(s) - _weighted(q, divergence.score(_floored(s, q, log_floor))).sum(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep the inputs; nothing else is stored."""
        del output
        *tensors, ctx.divergence, ctx.log_floor = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def by_s(ctx: Any) -> Tensor:
        """The derivative of the row losses with respect to s."""
        s, q, m = ctx.saved_tensors
        counted = q if ctx.log_floor is None else torch.where((q < 0) & (s < ctx.log_floor), 0.0, q)
        penalty: Tensor = m.unsqueeze(-1) * ctx.divergence.penalty_slope(s)
        return penalty - _weighted(counted, ctx.divergence.score_slope(s))

    @staticmethod
    def by_q_and_m(ctx: Any) -> tuple[Tensor, Tensor]:
        """The derivatives of the row losses with respect to q and m."""
        s, q, _ = ctx.saved_tensors
        return -ctx.divergence.score(_floored(s, q, ctx.log_floor)), ctx.divergence.penalty_sum(s)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The derivatives times the incoming gradient; differentiable again."""
        rows = grad.unsqueeze(-1)
        by_s = rows * SoftRows.by_s(ctx) if ctx.needs_input_grad[0] else None
        if not ctx.needs_input_grad[1]:
            return by_s, None, None, None, None
        by_q, by_m = SoftRows.by_q_and_m(ctx)
        return by_s, rows * by_q, grad * by_m, None, None


class SoftRowsForwardAD(SoftRows):
    """`SoftRows` with a forward-mode rule, kept apart because `torch.compile` does not trace a custom one."""

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        """The derivatives applied to the tangents."""
        along_s, along_q, along_m, *_ = tangents
        tangent = torch.zeros_like(ctx.saved_tensors[2])
        if along_s is not None:
            tangent = tangent + (SoftRows.by_s(ctx) * along_s).sum(-1)
        if along_q is not None and along_m is not None:
            by_q, by_m = SoftRows.by_q_and_m(ctx)
            tangent = tangent + (by_q * along_q).sum(-1) + by_m * along_m
        return tangent


class HardRows(Function):
    """Row losses for class indices, reduced as asked, without ever building q. Eager mode only.

    The gradient is finished in the forward pass, where it shares its exponentials with the value. It is the one tensor
    that is kept, and the first backward scales it in place and gives it away; fresh memory is what costs most.
    """

    @staticmethod
    def forward(ctx: Any, s: Tensor, labels: Tensor, divergence: Divergence, c: float, reduction: str) -> Tensor:
        """The row losses, their sum or their mean."""
        index = labels.unsqueeze(-1)
        s_label = s.gather(-1, index)
        if ctx.needs_input_grad[0]:
            penalty, gradient = divergence.penalty_sum_and_slope(s)
            if c != 1:
                gradient.mul_(c)
            ctx.gradient = gradient.scatter_add_(-1, index, divergence.score_slope(s_label).neg_())
            ctx.save_for_backward(s, index)
            ctx.divergence, ctx.c, ctx.reduction = divergence, c, reduction
        else:
            penalty = divergence.penalty_sum(s)
        rows = torch.sub(penalty if c == 1 else penalty * c, divergence.score(s_label).squeeze(-1))
        return rows if reduction == "none" else rows.mean() if reduction == "mean" else rows.sum()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        """The finished gradient times the incoming one; written out again for a second pass or a second derivative."""
        s, index = ctx.saved_tensors
        if ctx.reduction == "none":
            grad = grad.unsqueeze(-1)
        elif ctx.reduction == "mean":
            grad = grad / index.numel()
        gradient, ctx.gradient = ctx.gradient, None
        if gradient is None or torch.is_grad_enabled():
            gradient = ctx.c * ctx.divergence.penalty_slope(s)
            gradient = gradient.scatter_add(-1, index, -ctx.divergence.score_slope(s.gather(-1, index)))
            return gradient * grad, None, None, None, None
        try:
            return gradient.mul_(grad), None, None, None, None
        except RuntimeError:  # many incoming gradients at once, batched by vmap
            return gradient * grad, None, None, None, None


class CrossEntropyKernel(KullbackLeibler):
    """KL where D sums to one: the penalty is then constant and cancels the constant of the score.

    What is left of the loss is −Σ q·s, cross-entropy to the last digit (summing D only to subtract one would cost the
    digits of a confident prediction). The kernels take it as a divergence, which by itself it is not.
    """

    def score(self, s: Tensor) -> Tensor:
        """The logarithm."""
        return s

    def penalty(self, s: Tensor) -> Tensor:
        """Nothing."""
        return torch.zeros_like(s)

    def penalty_slope(self, s: Tensor) -> Tensor:
        """Nothing."""
        return torch.zeros_like(s)

    def penalty_sum(self, s: Tensor) -> Tensor:
        """Nothing."""
        return s.new_zeros(s.shape[:-1])

    def penalty_sum_and_slope(self, s: Tensor) -> tuple[Tensor, Tensor]:
        """Nothing, twice."""
        return self.penalty_sum(s), self.penalty_slope(s)
