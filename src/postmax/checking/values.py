"""Questions about the values of one column, which several detectors ask."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt

_FEW_ROWS = 10
_NEARLY_ALL = 0.95
_SOME = 1000
_TIME = r"(?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s*(?:[AaPp][Mm]|Z|[+-]\d{2}:?\d{2})?)?"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    rf"(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.](?:\d{{4}}|\d{{2}})"
    rf"|\d{{1,2}}[ .-]+{_MONTH}[ -]+\d{{2,4}}|{_MONTH} \d{{1,2}},? \d{{4}}){_TIME}",
    re.IGNORECASE,
)
_ID_NAME = re.compile(r"(?:^|[^a-z])(?:id|ids|uuid|guid|key|index|idx|nr|no|number|row|unnamed.*)$|^$|Id$|ID$")


def are_dates(values: npt.NDArray[Any]) -> bool:
    """Return whether nearly all values of a column are dates: text such as 2024-03-01, or numbers such as 20240301.

    Example:
        >>> are_dates(np.array(["3.12.2024", "4.12.2024 10:30", None], dtype=object))
        True
        >>> are_dates(np.array([20240301.0, 20240302.0, 20240229.0, 20240228.0, 20240227.0]))
        True
        >>> are_dates(np.array(["1.5", "12"], dtype=object))
        False
    """
    if values.dtype.kind == "f":
        return _are_date_numbers(values)
    present = [value.strip() for value in values.tolist() if isinstance(value, str) and value.strip()][:_SOME]
    return bool(present) and sum(_DATE.fullmatch(text) is not None for text in present) >= _NEARLY_ALL * len(present)


def name_rows(name: str, values: npt.NDArray[Any], total: int) -> bool:
    """Return whether a column seems to name or count the rows, so that it says nothing about new ones.

    That are texts that are all different; whole numbers that are all different and follow one another, rise from row to
    row, leave few gaps, are codes of equal length, or stand in a column with a name such as "id".

    Args:
        name: The name of the column.
        values: The values.
        total: How many rows there are, also of rows that are not looked at.
    """
    rows = len(values)
    if rows < _FEW_ROWS:
        return False
    if values.dtype.kind != "f":
        present = [value for value in values.tolist() if value is not None]
        different = len({value.strip() for value in present})
        return len(present) >= _NEARLY_ALL * rows and different >= _NEARLY_ALL * len(present)
    if not np.isfinite(values).all() or (values != np.round(values)).any():
        return False
    different = len(np.unique(values))
    if different < _NEARLY_ALL * rows:
        return False
    if _ID_NAME.search(name):
        return True
    if different < rows:
        return False
    rising = np.diff(values)
    length = {len(str(int(abs(value)))) for value in values[:_SOME]}
    in_order = bool((rising > 0).all() or (rising < 0).all())
    dense = float(values.max() - values.min()) + 1 <= 1.2 * total
    return in_order or dense or (len(length) == 1 and min(length) >= 6)


def _are_date_numbers(values: npt.NDArray[Any]) -> bool:
    present = np.unique(values[np.isfinite(values)])
    if len(present) < 5 or present.min() < 19000101 or present.max() > 21001231:
        return False
    return bool((present == np.round(present)).all()) and all(_is_date(int(value)) for value in present[:_SOME])


def _is_date(number: int) -> bool:
    try:
        return date(number // 10000, number // 100 % 100, number % 100) is not None
    except ValueError:
        return False
