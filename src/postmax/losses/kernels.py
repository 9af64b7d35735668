"""The f-PML loss of a row, `m·Σ_i F(s_i) − Σ_i q_i T(s_i)`, with its gradient written out.

Here s is log D, q are the label weights, F is the penalty and T is the score of the divergence, and the mass m of a row
is c·Σq. The gradient in s is `m·F'(s) − q·T'(s)`, and each divergence knows both slopes to full precision. Automatic
differentiation of the formula is slower. In float32 and below it also loses small gradients, because it computes the
derivative of expm1, or of a sigmoid close to one, by a subtraction.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from postmax.divergences import Divergence, KullbackLeibler
from postmax.losses.numerics.eager import is_batched


def _weighted(q: Tensor, values: Tensor) -> Tensor:
    """Return q·values with 0·∞ = 0, because a class that is not the label may have an infinite score."""
    return q * torch.where((q == 0) & ~values.isfinite(), 0.0, values)


def _floored(s: Tensor, q: Tensor, log_floor: float | None) -> Tensor:
    """Return s, raised to the floor where the label weight is negative and s is below the floor."""
    return s if log_floor is None else torch.where(q < 0, s.clamp_min(log_floor), s)


class DistributionKernel(Function):
    """The row losses `m·Σ_i F(s_i) − Σ_i q_i T(s_i)` for label weights q (…, C) and masses m (…).

    Entries of q are negative where noise was removed from the labels. If there is a `log_floor`, they have no influence
    where s is below it.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(s: Tensor, q: Tensor, m: Tensor, divergence: Divergence, log_floor: float | None) -> Tensor:
        """Return the row losses."""
        return m * divergence.penalty_sum(s) - _weighted(q, divergence.score(_floored(s, q, log_floor))).sum(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Store the inputs and nothing else."""
        del output
        *tensors, ctx.divergence, ctx.log_floor = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def by_s(ctx: Any) -> Tensor:
        """Return the derivative of the row losses with respect to s."""
        s, q, m = ctx.saved_tensors
        counted = q if ctx.log_floor is None else torch.where((q < 0) & (s < ctx.log_floor), 0.0, q)
        penalty: Tensor = m.unsqueeze(-1) * ctx.divergence.penalty_slope(s)
        return penalty - _weighted(counted, ctx.divergence.score_slope(s))

    @staticmethod
    def by_q_and_m(ctx: Any) -> tuple[Tensor, Tensor]:
        """Return the derivatives of the row losses with respect to q and m."""
        s, q, _ = ctx.saved_tensors
        return -ctx.divergence.score(_floored(s, q, ctx.log_floor)), ctx.divergence.penalty_sum(s)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the derivatives times the incoming gradient. They can be differentiated again."""
        rows = grad.unsqueeze(-1)
        by_s = rows * DistributionKernel.by_s(ctx) if ctx.needs_input_grad[0] else None
        if not ctx.needs_input_grad[1]:
            return by_s, None, None, None, None
        by_q, by_m = DistributionKernel.by_q_and_m(ctx)
        return by_s, rows * by_q, grad * by_m, None, None


class DistributionKernelForwardAD(DistributionKernel):
    """`DistributionKernel` with a rule for forward-mode AD, which `torch.compile` cannot trace."""

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        """Return the derivatives applied to the tangents."""
        along_s, along_q, along_m, *_ = tangents
        tangent = torch.zeros_like(ctx.saved_tensors[2])
        if along_s is not None:
            tangent = tangent + (DistributionKernel.by_s(ctx) * along_s).sum(-1)
        if along_q is not None and along_m is not None:
            by_q, by_m = DistributionKernel.by_q_and_m(ctx)
            tangent = tangent + (by_q * along_q).sum(-1) + by_m * along_m
        return tangent


class LabelKernel(Function):
    """The row losses for class indices, reduced, without building q. It is for plain eager mode only.

    The forward pass also computes the gradient, because both need the same exponentials. The gradient is the one large
    tensor that is kept. The first backward pass scales it in place and hands it on, because allocating a new tensor
    takes long: with a new tensor, a step for 1024×1000 logits takes 1.2 to 1.5 times as long (one thread, forward and
    backward; 128×10 logits show no difference). Later backward passes compute the gradient again.
    """

    @staticmethod
    def forward(ctx: Any, s: Tensor, labels: Tensor, divergence: Divergence, c: float, reduction: str) -> Tensor:
        """Return the row losses, their sum or their mean."""
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
        """Return the gradient times the incoming one, computed again for a second pass or a second derivative."""
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
        return gradient * grad if is_batched(grad) else gradient.mul_(grad), None, None, None, None


class CrossEntropyKernel(KullbackLeibler):
    """KL for a D that sums to one: the penalty is then constant and cancels the constant of the score.

    The rest of the loss is −Σ q·s, which is cross-entropy to the last digit. Summing D in order to subtract one from
    the sum would lose the digits of a confident prediction. The kernels use this class like a divergence, although it
    is not one by itself.
    """

    def score(self, s: Tensor) -> Tensor:
        """Return s, the logarithm of D."""
        return s

    def penalty(self, s: Tensor) -> Tensor:
        """Return zeros."""
        return torch.zeros_like(s)

    def penalty_slope(self, s: Tensor) -> Tensor:
        """Return zeros."""
        return torch.zeros_like(s)

    def penalty_sum(self, s: Tensor) -> Tensor:
        """Return zeros."""
        return s.new_zeros(s.shape[:-1])

    def penalty_sum_and_slope(self, s: Tensor) -> tuple[Tensor, Tensor]:
        """Return two zero tensors."""
        return self.penalty_sum(s), self.penalty_slope(s)
