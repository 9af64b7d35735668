"""The options that every loss shares with `nn.CrossEntropyLoss`, and checks of options."""

from __future__ import annotations

import math
from typing import TypedDict

from torch import Tensor

from postmax.errors import InputError

REDUCTIONS = ("none", "mean", "sum")


class Contract(TypedDict, total=False):
    """The options that every loss shares with `nn.CrossEntropyLoss`."""

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float


CONTRACT = tuple(Contract.__annotations__)
"""The names of these options."""


def check_contract(
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> None:
    """Check the shared options as far as that is possible before any data is seen."""
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
    """Check a number of classes, also against the one that another option such as a transition matrix fixes."""
    if given is None:
        return
    if isinstance(given, bool) or not isinstance(given, int) or given < 2:
        raise InputError(f"num_classes must be an integer of at least 2, got {given!r}.")
    if fixed not in (None, given):
        raise InputError(f"num_classes is {given}, but the transition matrix or the prior of the loss has {fixed}.")


def check_numbers(**options: object) -> None:
    """Raise an error that names the first option that is not a number."""
    for name, value in options.items():
        if not _is_number(value):
            raise InputError(f"{name} must be a number, got {value!r}.")


def check_positive(**options: object) -> None:
    """Raise an error that names the first option that is not a positive number."""
    for name, value in options.items():
        if not (_is_number(value) and 0 < value < math.inf):  # type: ignore[operator]
            raise InputError(f"{name} must be a positive number, got {value!r}.")


def check_not_negative(**options: object) -> None:
    """Raise an error that names the first option that is not a finite number of at least 0."""
    for name, value in options.items():
        if not (_is_number(value) and 0 <= value < math.inf):  # type: ignore[operator]
            raise InputError(f"{name} must be a number ≥ 0, got {value!r}.")


def check_probability(**options: object) -> None:
    """Raise an error that names the first option that is not a number strictly between 0 and 1."""
    for name, value in options.items():
        if not (_is_number(value) and 0 < value < 1):  # type: ignore[operator]
            raise InputError(f"{name} must be a number between 0 and 1, got {value!r}.")


def checked_weight(name: str, value: object) -> float:
    """Return the weight of a part of a sum, after checking that it is a finite number of at least 0."""
    if not (_is_number(value) and 0 <= value < math.inf):  # type: ignore[operator]
        raise InputError(f"{name} is the weight of a part, a finite number ≥ 0, got {value!r}.")
    return value  # type: ignore[return-value]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
