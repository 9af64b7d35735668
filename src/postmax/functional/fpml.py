"""The f-PML loss as a function."""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.divergences import Divergence
from postmax.functional.contract import (
    Target,
    autocast_enabled,
    check_logits,
    check_options,
    classes_last,
    look,
    may_look,
    refuse_nan,
    working_dtype,
)
from postmax.functional.kernels import HardRows, SoftRows, SoftRowsForwardAD
from postmax.functional.objective import Objective
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
    return objective_loss(objective, logits, target, weight, ignore_index, reduction, label_smoothing)


def objective_loss(
    objective: Objective,
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """`fpml_loss` for an objective that has been built before."""
    classes = check_logits(logits, objective.num_classes)
    if autocast_enabled(logits):  # like cross-entropy, in full precision and returned so
        with torch.autocast(logits.device.type, enabled=False):
            logits = logits.to(working_dtype(logits))
            return objective_loss(objective, logits, target, weight, ignore_index, reduction, label_smoothing)

    rows = classes_last(logits).to(working_dtype(logits))
    loss = None
    if weight is None and _one_label_a_row(objective, label_smoothing) and not 0 <= ignore_index < classes:
        loss = _all_rows(objective, rows, target, reduction)
    if loss is None:
        loss = _kept_rows(objective, rows, logits, target, weight, ignore_index, reduction, label_smoothing)
    return loss if loss.dtype == logits.dtype else loss.to(logits.dtype)


def _one_label_a_row(objective: Objective, label_smoothing: float) -> bool:
    """Whether a class index stays one: neither smoothed nor replaced by a row of P⁻¹."""
    return label_smoothing == 0 and objective.correction != "objective"


def _all_rows(objective: Objective, rows: Tensor, target: Tensor, reduction: str) -> Tensor | None:
    """The common case in the fewest operations: eager on the CPU, class indices, no row ignored. None if it is not."""
    if not may_look(rows) or getattr(target, "dtype", None) != torch.int64:
        return None
    if target.shape != rows.shape[:-1] or not target.numel():
        return None
    lowest, highest = (look(label) for label in target.aminmax())
    if lowest is None or highest is None or lowest < 0 or highest >= rows.shape[-1]:
        return None
    loss = _hard_rows(objective, objective.log_ratio(rows), target, reduction)
    if loss is not None:
        refuse_nan(rows, loss)
    return loss


def _hard_rows(objective: Objective, s: Tensor, labels: Tensor, reduction: str) -> Tensor | None:
    """`HardRows`, or None where it cannot run: under torch.compile, torch.func and forward-mode AD."""
    if torch.compiler.is_compiling():
        return None
    try:
        loss: Tensor = HardRows.apply(  # type: ignore[no-untyped-call]
            s, labels, objective.kernel, objective.passive_weight, reduction
        )
    except RuntimeError as error:  # torch offers no public way to ask beforehand
        if "setup_context" in str(error) or "forward mode AD" in str(error):
            return None
        raise
    return loss


def _kept_rows(
    objective: Objective,
    rows: Tensor,
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """Every case: ignored rows, class weights, smoothing, label distributions, corrections, transforms."""
    read = Target.read(logits, target, weight, ignore_index)
    rows = read.clear(rows)
    s = objective.log_ratio(rows)
    losses = None
    if read.labels is not None and _one_label_a_row(objective, label_smoothing):
        losses = _hard_rows(objective, s, read.labels, "none")
        if losses is not None and weight is not None:
            losses = losses * read.label_weight(weight.to(s))
    if losses is None:
        q = objective.label_weights(read.distribution(s, label_smoothing, objective.background(s)))
        if weight is not None:
            q = q * weight.to(s)
        kernel = SoftRows if torch.compiler.is_compiling() else SoftRowsForwardAD
        mass = objective.passive_weight * q.sum(-1)
        losses = kernel.apply(s, q, mass, objective.kernel, objective.log_floor)  # type: ignore[no-untyped-call]
    refuse_nan(rows, losses)
    return read.reduce(losses, weight, reduction)
