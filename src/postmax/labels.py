"""Turn labels as people write them into class indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.errors import InputError, LabelError
from postmax.row_names import INDICES, RowNames
from postmax.wording import listed

_MISSING_WORDS = ("", "nan")
# Floats cannot tell neighbouring whole numbers above this apart.
_EXACT = 2**53


@dataclass(frozen=True)
class EncodedLabels:
    """Class indices, and the labels that they stand for.

    Attributes:
        codes: int64 (N,), class indices 0…K−1.
        classes: The label of each class.
    """

    codes: Tensor
    classes: tuple[str | int, ...]

    def decode(self, codes: Tensor | npt.NDArray[np.integer]) -> npt.NDArray[Any]:
        """Return the labels that `codes` stand for."""
        names: npt.NDArray[Any] = np.asarray(self.classes)[np.asarray(codes)]
        return names


def encode_labels(
    values: Any,
    *,
    classes: Sequence[str | int] | None = None,
    where: str = "labels",
    rows: RowNames = INDICES,
) -> EncodedLabels:
    """Return class indices for labels that are strings, booleans or whole numbers.

    Whole numbers may be written as floats, may have gaps, and may be negative.

    Classes are sorted, so the same labels give the same indices in any order of rows. A class that does not occur among
    the labels has an index only if it is named in `classes`.

    Args:
        values: One label for each row: a list, an array, a tensor or a column of a data frame.
        classes: All classes in the order of their indices; by default the labels that occur, sorted.
        where: The name of the labels in error messages.
        rows: How error messages call the rows.

    Raises:
        InputError: If there are no rows, a label is missing, or labels are numbers with a fractional part.
        LabelError: If a label is not among `classes`.

    Example:
        >>> encode_labels(["dog", "cat", "dog"])
        EncodedLabels(codes=tensor([1, 0, 1]), classes=('cat', 'dog'))
        >>> encode_labels([3.0, 7.0, -1.0]).classes
        (-1, 3, 7)
    """
    array = _one_dimensional(values, where)
    problems = label_problems(array, rows)
    if problems:
        raise InputError(f"{where}: {listed(problems)}")
    array = _strings_or_numbers(array)
    if classes is None:
        distinct, codes = np.unique(array, return_inverse=True)
        return EncodedLabels(torch.from_numpy(codes.astype(np.int64)), tuple(distinct.tolist()))
    return EncodedLabels(_look_up(array, tuple(classes), where), tuple(classes))


def class_indices(labels: Any, num_classes: int, *, where: str = "labels") -> Tensor:
    """Check labels that are class indices 0…K−1, and return them as int64 on the CPU.

    Raises:
        LabelError: If a label is outside 0…K−1; the message names its index.
        InputError: If the labels are not whole numbers. `encode_labels` turns strings into indices.
    """
    array = _one_dimensional(labels, where)
    if array.dtype.kind == "f":
        if problems := label_problems(array, INDICES):
            raise InputError(f"{where}: {listed(problems)}")
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise InputError(
            f"{where} must be class indices 0…{num_classes - 1}, got {array.dtype} such as {array[0]!r}. "
            "postmax.encode_labels turns names into indices."
        )
    outside = (array < 0) | (array >= num_classes)
    if outside.any():
        row, number = int(outside.argmax()), int(outside.sum())
        raise LabelError(
            f"{where}: {INDICES.one(row)} has label {array[row]}, outside 0…{num_classes - 1} "
            f"({number} such row{'s' if number > 1 else ''}). postmax.encode_labels renumbers labels with gaps."
        )
    return torch.from_numpy(array.astype(np.int64))


def _one_dimensional(values: Any, where: str) -> npt.NDArray[Any]:
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{where} must be one label for each row: {error}.") from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"{where} must be one label for each row, got shape {array.shape}.")
    if not len(array):
        raise InputError(f"{where}: there are no rows.")
    return array


def label_problems(array: npt.NDArray[Any], rows: RowNames) -> list[str]:
    """Return what keeps values from being labels: all of it, as sentences that name the rows."""
    if array.dtype.kind not in "fbiuOUST":
        return [f"{array.dtype} cannot name classes; use strings or whole numbers."]
    if array.dtype.kind in "bi":
        return []
    if array.dtype.kind == "f":
        missing = ~np.isfinite(array)
    else:
        missing = (
            np.array([is_missing_label(value) for value in array]) if array.dtype.kind in "OUST" else array != array
        )
    problems = []
    if missing.any():
        which = np.flatnonzero(missing)
        one = len(which) == 1
        what = f"{rows.some(which)} {'has' if one else 'have'} no label{'' if one else f' ({len(which)} rows)'}"
        problems.append(f"{what}. Label {'it' if one else 'them'}, or delete {'it' if one else 'them'} from the data.")
    present = array[~missing]
    if present.dtype.kind == "O" and not all(isinstance(value, int | float | np.number) for value in present):
        return problems
    return problems if present.dtype.kind in "UST" else problems + _number_problems(array, missing, rows)


def _number_problems(array: npt.NDArray[Any], missing: npt.NDArray[np.bool_], rows: RowNames) -> list[str]:
    values = np.where(missing, 0, array).astype(np.float64)
    fractional, large = values != np.round(values), np.abs(values) > _EXACT
    problems = []
    if fractional.any():
        row = int(fractional.argmax())
        problems.append(
            f"{rows.one(row)} holds {array[row]}. Labels are classes; numbers with a fractional part look like a "
            "regression target."
        )
    if large.any():
        row = int(large.argmax())
        problems.append(f"{rows.one(row)} holds {array[row]}, too large for a class.")
    return problems


def _strings_or_numbers(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind in "fiu" or all(isinstance(value, int | float | np.number) for value in array):
        return array.astype(np.int64)
    return np.array([value.decode() if isinstance(value, bytes) else str(value) for value in array])


def is_missing_label(value: object) -> bool:
    """Return whether a value is no label: None, NaN, or a text that says so."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return True
    return isinstance(value, str) and value.strip().lower() in _MISSING_WORDS


def _look_up(array: npt.NDArray[Any], classes: tuple[str | int, ...], where: str) -> Tensor:
    if len(set(classes)) != len(classes):
        raise InputError(f"{where}: the list of classes names one of them twice.")
    positions = {str(name): i for i, name in enumerate(classes)}
    distinct, inverse = np.unique(array, return_inverse=True)
    unknown = [str(value) for value in distinct if str(value) not in positions]
    if unknown:
        raise LabelError(f"{where}: {unknown[0]!r} is not one of the {len(classes)} classes {list(classes)[:8]}.")
    table = np.array([positions[str(value)] for value in distinct], dtype=np.int64)
    return torch.from_numpy(table[inverse])
