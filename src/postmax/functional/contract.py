"""The contract of `nn.CrossEntropyLoss`, kept for every loss: shapes, targets, weights, ignored rows, reductions.

Inside, the classes are the last dimension, half precision has become float32, ignored rows are zeros with label 0, and
a loss only has to say what one row costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from postmax.errors import InputError, LabelError, NotFiniteError

REDUCTIONS = ("none", "mean", "sum")


def check_numbers(**numbers: float) -> None:
    """Refuse options that are no numbers, by their names."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{name} must be a number, got {value!r}.")


def check_options(reduction: str, label_smoothing: float, weight: Tensor | None, ignore_index: int) -> None:
    """Refuse what can be known to be wrong before any data is seen."""
    check_numbers(label_smoothing=label_smoothing)
    if isinstance(ignore_index, bool) or not isinstance(ignore_index, int):
        raise InputError(f"ignore_index must be an integer, got {ignore_index!r}.")
    if reduction not in REDUCTIONS:
        raise InputError(f"reduction must be one of {', '.join(map(repr, REDUCTIONS))}, got {reduction!r}.")
    if not 0.0 <= label_smoothing <= 1.0:
        raise InputError(f"label_smoothing must be between 0.0 and 1.0, got {label_smoothing}.")
    if weight is None:
        return
    if not isinstance(weight, Tensor):
        raise InputError(f"weight must be a tensor with one float for each class, got {type(weight).__name__}.")
    if weight.ndim != 1 or not weight.is_floating_point():
        raise InputError(
            f"weight must hold one float for each class, got {weight.dtype} of shape {tuple(weight.shape)}."
        )


def check_num_classes(given: object, fixed: int | None = None) -> None:
    """Refuse a number of classes that is none, or not the one an option such as a transition matrix fixes."""
    if given is None:
        return
    if isinstance(given, bool) or not isinstance(given, int) or given < 2:
        raise InputError(f"num_classes must be an integer of at least 2, got {given!r}.")
    if fixed not in (None, given):
        raise InputError(f"num_classes is {given}, but the transition matrix or the prior of the loss has {fixed}.")


def classes_last(logits: Tensor) -> Tensor:
    """(C), (N, C) or (N, C, d1, …, dk) with the class dimension moved to the end."""
    return logits.movedim(1, -1) if logits.ndim > 2 else logits


def class_dim(logits: Tensor) -> int:
    """Where the classes are: 0 for (C), 1 for everything else."""
    return 0 if logits.ndim == 1 else 1


def autocast_enabled(tensor: Tensor) -> bool:
    """Return whether autocast is on for the tensor's device (not every device has one)."""
    device = tensor.device.type
    # torch.compile of torch 2.6 cannot trace is_autocast_available, so the usual devices do not ask.
    available = device in ("cpu", "cuda") or torch.amp.is_autocast_available(device)
    return available and torch.is_autocast_enabled(device)


def working_dtype(logits: Tensor) -> torch.dtype:
    """float64 stays, everything narrower is computed in float32."""
    return torch.float64 if logits.dtype == torch.float64 else torch.float32


def check_logits(logits: Tensor, num_classes: int | None = None) -> int:
    """The number of classes in `logits`, after checking that they are logits at all."""
    if not isinstance(logits, Tensor):
        raise InputError(f"logits must be a tensor, got {type(logits).__name__}.")
    if logits.ndim == 0 or not logits.is_floating_point():
        raise InputError(
            "logits must be floating point of shape (C), (N, C) or (N, C, d1, …, dk), "
            f"got {logits.dtype} of shape {tuple(logits.shape)}."
        )
    classes = logits.shape[class_dim(logits)]
    if classes < 2:
        raise InputError(
            f"a classifier needs at least two classes; logits of shape {tuple(logits.shape)} have {classes}."
        )
    if num_classes is not None and classes != num_classes:
        raise InputError(
            f"logits of shape {tuple(logits.shape)} have {classes} classes; the loss was made for {num_classes}, as "
            "its num_classes, transition matrix or prior says."
        )
    return classes


@dataclass(frozen=True)
class Target:
    """A target read once: either class indices or probabilities, never both.

    Attributes:
        labels: (…) int64 class indices, 0 where ignored; None for probability targets.
        probabilities: (…, C), classes last; None for class indices.
        keep: (…) bool, False where ignored; None if nothing can be ignored.
    """

    labels: Tensor | None
    probabilities: Tensor | None
    keep: Tensor | None

    @classmethod
    def read(cls, logits: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> Target:
        """Check `target` and `weight` against `logits` and bring the target into the form above."""
        check_target(logits, target, weight, ignore_index)
        if target.is_floating_point():
            return cls(None, classes_last(target).to(working_dtype(logits)), None)
        labels = target.long()
        keep = labels != ignore_index
        labels = check_label_range(torch.where(keep, labels, 0), logits.shape[class_dim(logits)])
        return cls(labels, None, keep)

    def clear(self, rows: Tensor) -> Tensor:
        """`rows` (…, C) with zeros where ignored, so that a NaN there reaches neither the value nor the gradient."""
        return rows if self.keep is None else torch.where(self.keep.unsqueeze(-1), rows, 0.0)

    def distribution(self, like: Tensor, label_smoothing: float, background: Tensor) -> Tensor:
        """The label distribution (…, C) of every row, smoothed towards `background` (C)."""
        if self.probabilities is not None:
            q = self.probabilities
        else:
            assert self.labels is not None  # noqa: S101  (one of the two is always there)
            q = torch.zeros_like(like).scatter(-1, self.labels.unsqueeze(-1), 1.0)
        if label_smoothing > 0:
            q = q * (1 - label_smoothing) + label_smoothing * background
        return q

    def reduce(self, rows: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
        """Reduce row losses, which already carry the class weights, as cross-entropy does.

        The mean over class indices divides by the weights of the kept labels, the mean over probabilities by the number
        of rows; both are 0/0 = NaN when nothing is there to average.
        """
        if self.keep is not None:
            rows = torch.where(self.keep, rows, 0.0)
        if reduction == "none":
            return rows
        total = rows.sum()
        if reduction == "sum":
            return total
        if self.keep is None:
            return total / rows.numel() if rows.numel() else total * torch.nan
        if weight is None:
            return total / self.keep.sum()
        return total / torch.where(self.keep, self.label_weight(weight.to(rows)), 0.0).sum()

    def label_weight(self, weight: Tensor) -> Tensor:
        """The weight (…) of each row's label."""
        assert self.labels is not None  # noqa: S101  (probability targets have no single label)
        index = self.labels.unsqueeze(-1)  # weight[labels] would do, but not for a single label under vmap
        return weight.expand(*self.labels.shape, -1).gather(-1, index).squeeze(-1)


def check_target(logits: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> None:
    """Raise if target and weight do not fit the logits; says what was given and what is expected."""
    if not isinstance(target, Tensor):
        raise InputError(f"target must be a tensor, got {type(target).__name__}.")
    dim = class_dim(logits)
    index_shape = logits.shape[:dim] + logits.shape[dim + 1 :]
    expected = (
        f"Expected class indices (integers) of shape {tuple(index_shape)} or class probabilities (floating point) of "
        f"shape {tuple(logits.shape)} for logits of shape {tuple(logits.shape)}; got {target.dtype} of shape "
        f"{tuple(target.shape)}."
    )
    if target.is_floating_point():
        if target.shape != logits.shape:
            raise InputError(expected)
        if ignore_index >= 0:
            raise InputError(
                f"ignore_index = {ignore_index} is not supported with class probabilities: a distribution names no "
                "single class. Give the rows to ignore a probability of zero everywhere instead."
            )
    elif target.dtype == torch.bool or target.is_complex() or target.shape != index_shape:
        raise InputError(expected)
    classes = logits.shape[dim]
    if weight is not None and weight.shape != (classes,):
        raise InputError(
            f"weight must hold one value for each of the {classes} classes, got shape {tuple(weight.shape)}."
        )


def check_label_range(labels: Tensor, classes: int) -> Tensor:
    """The labels, after raising for any outside 0 … C−1, where the values may be looked at.

    A compiled graph cannot look; there the labels take a detour through gather, which checks its indices as it runs.
    """
    if torch.compiler.is_compiling():
        known = torch.arange(classes, device=labels.device)
        return known.gather(0, labels.reshape(-1)).reshape(labels.shape)
    if not may_look(labels):
        return labels
    outside = (labels < 0) | (labels >= classes)
    if look(outside.any()):
        where = tuple(outside.nonzero()[0].tolist())
        raise LabelError(
            f"label {int(labels[where])} at position {where} is out of range: the logits have {classes} classes, so "
            f"labels are 0 … {classes - 1} (or ignore_index)."
        )
    return labels


def refuse_nan(rows: Tensor, losses: Tensor) -> None:
    """Raise if NaN logits made a loss NaN, where the values may be looked at (infinite logits may do so too)."""
    if not may_look(losses):
        return
    value = look(losses.sum() if losses.ndim else losses)
    if value is not None and math.isnan(value):
        bad = rows.isnan().any(-1)
        if bad.any():
            where = tuple(bad.nonzero()[0].tolist())
            raise NotFiniteError(
                f"{int(bad.sum())} of {bad.numel()} rows of logits hold NaN, the first at {where}. The network "
                "diverged or its input holds NaN: lower the learning rate, clip gradients, or check the data."
            )


def may_look(tensor: Tensor) -> bool:
    """Whether values can be had without a graph break or waiting for a device: eager and on the CPU."""
    return not torch.compiler.is_compiling() and tensor.device.type == "cpu"


def look(scalar: Tensor) -> float | None:
    """The value, or None under vmap, where it is many values."""
    try:
        return float(scalar.item())
    except RuntimeError:
        return None
