"""The cells of a column as text, and where some of them are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from postmax.row_names import RowNames


def texts_of(values: npt.NDArray[Any]) -> list[str]:
    """Return cells as text without white space around it; a missing one is "".

    Example:
        >>> texts_of(np.array([" red ", None, 3.0], dtype=object))
        ['red', '', '3']
    """

    def text(value: Any) -> str:
        if value is None or (isinstance(value, float) and np.isnan(value)):
            return ""
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()

    return [text(v) for v in values.tolist()]


def place_of(found: Sequence[int] | npt.NDArray[np.int64], rows: RowNames) -> str:
    """Return where rows are, as the end of a sentence.

    Example:
        >>> place_of([2, 5], RowNames("line", range(2, 10)))
        ' in lines 4, 7 (2 rows)'
    """
    many = f" ({len(found)} rows)" if len(found) > 1 else ""
    at = "at" if rows.kind == "index" else "in"
    return f" {at} {rows.some(found)}{many}"
