"""The contract of `nn.CrossEntropyLoss`, which every loss keeps: shapes, targets, weights, ignored rows, reductions.

The functions here bring logits and targets into one form: the classes are the last dimension, half precision becomes
float32, and ignored rows hold zeros and the label 0. A loss then only has to compute the loss of one row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from postmax.errors import InputError, LabelError, NotFiniteError
from postmax.losses.numerics.eager import under_vmap
from postmax.transition.full_precision import working_dtype


def classes_last(logits: Tensor) -> Tensor:
    """Return logits of shape (C), (N, C) or (N, C, d1, …, dk) with the class dimension moved to the end."""
    return logits.movedim(1, -1) if logits.ndim > 2 else logits


def class_dim(logits: Tensor) -> int:
    """Return the dimension that holds the classes: 0 for logits of shape (C), 1 for all other shapes."""
    return 0 if logits.ndim == 1 else 1


def check_logits(logits: Tensor, num_classes: int | None = None) -> int:
    """Check that `logits` are logits, and return their number of classes."""
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
    """A checked target: either class indices or probabilities, never both.

    Attributes:
        labels: (…) int64 class indices, 0 where ignored; None for probability targets.
        probabilities: (…, C), classes last; None for class indices.
        keep: (…) bool, False where ignored; None if nothing can be ignored.
    """

    labels: Tensor | None
    probabilities: Tensor | None
    keep: Tensor | None

    @classmethod
    def checked(cls, logits: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> Target:
        """Check `target` and `weight` against `logits`, and bring the target into the form above."""
        check_target(logits, target, weight, ignore_index)
        if target.is_floating_point():
            return cls(None, classes_last(target).to(working_dtype(logits)), None)
        labels = target.long()
        keep = labels != ignore_index
        labels = check_label_range(torch.where(keep, labels, 0), logits.shape[class_dim(logits)])
        return cls(labels, None, keep)

    def clear(self, rows: Tensor) -> Tensor:
        """Return `rows` (…, C) with zeros in ignored rows, so that a NaN there reaches neither value nor gradient."""
        return rows if self.keep is None else torch.where(self.keep.unsqueeze(-1), rows, 0.0)

    def distribution(self, like: Tensor, label_smoothing: float, background: Tensor) -> Tensor:
        """Return the label distribution (…, C) of every row, smoothed towards `background` (C)."""
        if self.probabilities is not None:
            q = self.probabilities
        else:
            assert self.labels is not None  # noqa: S101  (one of the two is always there)
            q = torch.zeros_like(like).scatter(-1, self.labels.unsqueeze(-1), 1.0)
        if label_smoothing > 0:
            q = q * (1 - label_smoothing) + label_smoothing * background
        return q

    def reduce(self, rows: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
        """Reduce row losses, which already carry the class weights, in the same way as cross-entropy.

        The mean over class indices divides by the weights of the kept labels. The mean over probabilities divides by
        the number of rows. Both are 0/0 = NaN if there is no row to average.
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
        """Return the weight (…) of each row's label."""
        assert self.labels is not None  # noqa: S101  (probability targets have no single label)
        index = self.labels.unsqueeze(-1)  # weight[labels] does not work for a single label under vmap
        return weight.expand(*self.labels.shape, -1).gather(-1, index).squeeze(-1)


def check_target(logits: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> None:
    """Raise an error if target and weight do not fit the logits. It says what was given and what is expected."""
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
    """Return the labels, after raising an error for labels outside 0 … C−1 wherever values can be read.

    A compiled graph cannot read values. There the labels pass through gather, which checks its indices when it runs.
    """
    if torch.compiler.is_compiling():
        known = torch.arange(classes, device=labels.device)
        return known.gather(0, labels.reshape(-1)).reshape(labels.shape)
    if not can_read(labels):
        return labels
    outside = (labels < 0) | (labels >= classes)
    if outside.any():
        where = tuple(int(i) for i in outside.nonzero()[0])  # not tolist: torch 2.6 cannot do it under torch.func
        raise LabelError(
            f"label {int(labels[where])} at position {where} is out of range: the logits have {classes} classes, so "
            f"labels are 0 … {classes - 1} (or ignore_index)."
        )
    return labels


def all_labels_count(rows: Tensor, target: Tensor, ignore_index: int) -> bool:
    """Return whether `target` is known to hold one class index for each of the rows (…, C), none of them ignored.

    False also means that this cannot be known here, for example in a compiled graph.
    """
    classes = rows.shape[-1]
    if not can_read(rows) or getattr(target, "dtype", None) != torch.int64 or 0 <= ignore_index < classes:
        return False
    if target.shape != rows.shape[:-1] or not target.numel():
        return False
    lowest, highest = target.aminmax()
    return lowest.item() >= 0 and highest.item() < classes


def refuse_nan(rows: Tensor, losses: Tensor) -> None:
    """Raise `NotFiniteError` if NaN logits made a loss NaN, wherever values can be read.

    Infinite logits can make a loss NaN as well; that is not an error, because cross-entropy does the same.
    """
    if not can_read(losses) or not math.isnan(losses.sum().item() if losses.ndim else losses.item()):
        return
    bad = rows.isnan().any(-1)
    if bad.any():
        where = tuple(int(i) for i in bad.nonzero()[0])
        raise NotFiniteError(
            f"{int(bad.sum())} of {bad.numel()} rows of logits hold NaN, the first at {where}: the network diverged, "
            "or its inputs hold NaN."
        )


def can_read(tensor: Tensor) -> bool:
    """Return whether the values of a tensor can be read without a graph break and without waiting for a device.

    That is so in eager mode on the CPU, except under vmap, where the tensor stands for many, and for fake tensors.
    """
    return (
        not torch.compiler.is_compiling()
        and tensor.device.type == "cpu"
        and not under_vmap()
        and not isinstance(tensor, FakeTensor)
    )
