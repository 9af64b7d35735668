"""Columns with one value only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from postmax.checking.catalogue import register
from postmax.checking.examined import Examined
from postmax.checking.finding import Finding

_FEW_ROWS = 5


def find(data: Examined) -> Iterator[Finding]:
    """Yield the columns with one value only. In arrays without names, such as pixels, they do no harm."""
    if not data.named or len(data) < _FEW_ROWS:
        return
    found = [name for name, values in data.columns.items() if len({v for v in values.tolist() if v == v}) == 1]
    found = [name for name in found if not _has_gaps(data, name)]
    if found:
        one = len(found) == 1
        which = f"Column {found[0]!r} has" if one else f"Columns {', '.join(map(repr, found[:5]))} have"
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        which = which if one else which.removesuffix(" have") + f"{more} have"
        text = f"{which} the same value in all rows, so {'it says' if one else 'they say'} nothing."
        yield Finding("constant columns", text, data.without(found), tuple(found), severity="note")


def _has_gaps(data: Examined, name: str) -> bool:
    values = data.columns[name]
    return bool(np.isnan(values).any()) if values.dtype.kind == "f" else None in values.tolist()


register("constant columns", find, order=70)
