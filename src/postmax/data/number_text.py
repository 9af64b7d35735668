"""Numbers as people write them in a text file: with a decimal point or comma, or missing."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Decimal: TypeAlias = Literal[".", ","]

_MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})


def numbers(values: npt.NDArray[Any], decimal: Decimal = ".") -> npt.NDArray[np.float64] | None:
    """Return the values as float64, with NaN for missing ones; None if one of them is not a number.

    Example:
        >>> numbers(np.array(["1,5", "n/a"], dtype=object), ",")
        array([1.5, nan])
    """
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if any("_" in v for v in values if v is not None):  # Python reads "1_000" as a number, but people mean a name
        return None
    if decimal == ",":
        if any("." in v for v in values if v is not None):
            return None
        values = np.array([v if v is None else v.replace(",", ".") for v in values], dtype=object)
    try:
        return values.astype(np.float64)
    except (ValueError, TypeError):
        cells = ["nan" if is_missing(v) else v for v in values]
    try:
        return np.array(cells, dtype=object).astype(np.float64)
    except ValueError:
        return None


def is_missing(text: str | None) -> bool:
    """Return whether a cell holds one of the words for a missing value."""
    return text is None or text.strip().lower() in _MISSING_WORDS
