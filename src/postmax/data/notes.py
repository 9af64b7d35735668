"""Notes about data that can be used, but may not be what a person meant."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.data.columns import Columns
from postmax.data.label_text import alike
from postmax.data.number_text import Decimal, is_missing, numbers
from postmax.data.problems import in_words
from postmax.row_names import RowNames

_FEW_ROWS = 5
_SHOWN = 5
_MOSTLY = 0.8


def column_notes(
    columns: Columns, texts: Collection[str], dropped: Sequence[str], decimal: Decimal, rows: RowNames
) -> tuple[str, ...]:
    """Return notes about columns that are features: those that look like row numbers, and numbers read as text.

    Args:
        columns: The columns that are features.
        texts: The names of those that are read as text.
        dropped: The columns that are dropped already.
        decimal: The sign before the decimals of a number.
        rows: How messages call the rows.
    """
    ids = columns_that_name_rows(columns, texts, decimal)
    notes = []
    if ids:
        one = len(ids) == 1
        which = f"column {ids[0]!r} looks" if one else f"columns {_some(ids)} look"
        used = "it is used as a feature" if one else "they are used as features"
        leave = f"To leave {'it' if one else 'them'} out: {in_words({'drop': ids}, dropped)}"
        notes.append(f"{which} like names or numbers of the rows, but {used}. {leave}")
    for name, values in columns.items():
        if name in texts and name not in ids and (odd := odd_cells(values, decimal)):
            shown = f"{str(values[odd[0]])[:40]!r} in {rows.some(odd)}"
            notes.append(f"column {name!r} is read as text, because not all of its values are numbers: {shown}")
    return tuple(notes)


def columns_that_name_rows(columns: Columns, texts: Collection[str], decimal: Decimal) -> list[str]:
    """Return the columns that look like names or numbers of the rows: texts that all differ, and 1, 2, 3 and so on.

    Args:
        columns: The columns.
        texts: The names of those that are read as text.
        decimal: The sign before the decimals of a number.
    """
    return [n for n, v in columns.items() if (_all_different(v) if n in texts else _counts_rows(v, decimal))]


def class_notes(classes: Sequence[str | int], labels: Tensor) -> tuple[str, ...]:
    """Return notes about classes: those that may be the same one written in two ways, and those with one row.

    Example:
        >>> print(*class_notes(["Red", "red", "blue"], torch.tensor([0, 0, 1, 1, 2, 2])))
        classes 'Red' and 'red' differ only in upper and lower case or white space. To make them one: merge_labels=True
    """
    notes = [
        f"classes {' and '.join(map(repr, names))} differ only in upper and lower case or white space. To make them "
        f"one: {in_words({'merge_labels': ['']})}"
        for names in alike(map(str, classes))
    ]
    counts = torch.bincount(labels, minlength=len(classes))
    single = [str(classes[code]) for code in (counts == 1).nonzero()[:, 0].tolist()]
    if single and len(labels) >= _FEW_ROWS:
        one = len(single) == 1
        which = f"class {single[0]!r} has" if one else f"{len(single)} classes ({_some(single)}) have"
        notes.append(f"{which} only one row{'' if one else ' each'}")
    return tuple(notes)


def _all_different(values: npt.NDArray[Any]) -> bool:
    return len(values) >= _FEW_ROWS and len({str(value).strip() for value in values}) == len(values)


def _counts_rows(values: npt.NDArray[Any], decimal: Decimal) -> bool:
    """Return whether the values are 0…N−1 or 1…N, in any order."""
    # Most columns are found out by their first rows.
    if len(values) < _FEW_ROWS or not _are_whole(numbers(values[:_FEW_ROWS], decimal)):
        return False
    found = numbers(values, decimal)
    if found is None or not _are_whole(found):
        return False
    first = found.min()
    return first in (0, 1) and bool(np.array_equal(np.sort(found), np.arange(len(found)) + first))


def _are_whole(found: npt.NDArray[np.float64] | None) -> bool:
    return found is not None and bool(np.isfinite(found).all() and (found == np.round(found)).all())


def odd_cells(values: npt.NDArray[Any], decimal: Decimal) -> list[int]:
    """Return the rows whose cells are not numbers, if most of the other cells are numbers; else an empty list."""
    present = [row for row, value in enumerate(values) if not is_missing(value)]
    # Most columns of text have few different values, and to test one takes a while.
    different = {values[row] for row in present}
    words = {value for value in different if numbers(np.array([value], dtype=object), decimal) is None}
    odd = [row for row in present if values[row] in words]
    return odd if len(present) - len(odd) >= _MOSTLY * len(present) else []


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")
