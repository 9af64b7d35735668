"""Columns with one value only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

from postmax.checking.catalogue import register
from postmax.checking.examined import Examined
from postmax.checking.finding import Finding

_FEW_ROWS = 5


def find(data: Examined) -> Iterator[Finding]:
    """Yield the columns with one value only. In arrays without names, such as pixels, they do no harm."""
    if not data.named or len(data) < _FEW_ROWS:
        return
    found = [name for name, values in data.columns.items() if _is_constant(values)]
    if found:
        one = len(found) == 1
        which = f"Column {found[0]!r} has" if one else f"Columns {', '.join(map(repr, found[:5]))} have"
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        which = which if one else which.removesuffix(" have") + f"{more} have"
        text = f"{which} the same value in all rows, so {'it says' if one else 'they say'} nothing."
        yield Finding("constant columns", text, data.without(found), tuple(found), severity="note")


def _is_constant(values: npt.NDArray[Any]) -> bool:
    """Return whether all values are the same, and none is missing."""
    if values.dtype.kind == "f":
        return bool((values == values[0]).all())
    return values[0] is not None and all(value == values[0] for value in values.tolist())


register("constant columns", find, order=70)
