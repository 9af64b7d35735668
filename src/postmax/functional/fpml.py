"""The f-PML loss as a function."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from postmax.divergences import Divergence
from postmax.eager import eager
from postmax.functional.contract import check_options
from postmax.functional.kernels import HardRows, SoftRows, SoftRowsForwardAD
from postmax.functional.objective import Objective
from postmax.functional.rows import reduced_loss
from postmax.links import Link
from postmax.transition import Transition
from postmax.transition.matrix import Matrix


def fpml_loss(
    logits: Tensor,
    target: Tensor,
    divergence: str | Divergence = "gan",
    link: str | Link | None = None,
    *,
    transition: Transition | Matrix | None = None,
    correction: str | None = None,
    passive_weight: float = 1.0,
    floor: float | None = None,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The f-PML loss `−Σ_i q_i T_i + c·Σ_i f*(T_i)` of logits and targets. See `postmax.FPMLLoss`.

    In a training loop use the Module: it inverts and checks the transition matrix once, this function at every call.

    Example:
        >>> logits, labels = torch.tensor([[2.0, -1.0, 0.5]]), torch.tensor([0])
        >>> fpml_loss(logits, labels, "kl", "softmax") == torch.nn.functional.cross_entropy(logits, labels)
        tensor(True)
    """
    check_options(reduction, label_smoothing, weight, ignore_index)
    objective = Objective.build(divergence, link, transition, correction, passive_weight, floor)
    objective.check_weight(weight)
    return reduced_loss(
        ObjectiveRows(objective),
        logits,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


@dataclass(frozen=True)
class ObjectiveRows:
    """What a row costs under an f-PML objective; see `postmax.functional.rows.RowLoss`."""

    objective: Objective
    classes: int | None = None

    @property
    def num_classes(self) -> int | None:
        """The number of classes, if it was given or a transition matrix fixes it."""
        return self.objective.num_classes if self.classes is None else self.classes

    def of_labels(self, rows: Tensor, labels: Tensor, keep: Tensor | None, reduction: str) -> Tensor | None:  # noqa: ARG002  (rows are independent)
        """Row losses with the gradient finished in the forward pass; None where that cannot be done.

        It cannot if noise is taken out of the labels, nor under torch.compile, torch.func and forward-mode AD.
        """
        objective = self.objective
        if objective.replaces_labels:
            return None
        s = objective.log_ratio(rows)
        return eager(HardRows, s, labels, objective.kernel, objective.passive_weight, reduction)

    def of_distributions(self, rows: Tensor, q: Tensor, weight: Tensor | None, keep: Tensor | None) -> Tensor:  # noqa: ARG002  (rows are independent)
        """Row losses of label distributions, corrected if they are to be."""
        objective = self.objective
        q = objective.label_weights(q)
        if weight is not None:
            q = q * weight
        kernel = SoftRows if torch.compiler.is_compiling() else SoftRowsForwardAD
        mass = objective.passive_weight * q.sum(-1)
        losses: Tensor = kernel.apply(  # type: ignore[no-untyped-call]
            objective.log_ratio(rows), q, mass, objective.kernel, objective.log_floor
        )
        return losses

    def background(self, rows: Tensor) -> Tensor:
        """The labels one would see if the true classes were uniform."""
        return self.objective.background(rows)
