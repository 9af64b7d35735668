"""Columns that name or count the rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from postmax.checking.catalogue import register
from postmax.checking.examined import Codes, Examined
from postmax.checking.finding import Finding
from postmax.checking.values import are_dates

_FEW_ROWS = 10
# How much more often than by chance a row has the label of the row before it, so that rows count as sorted by class.
_SORTED = 0.5


def find(data: Examined) -> Iterator[Finding]:
    """Yield the columns that name or count the rows. They are worse if the rows are sorted by class."""
    for name, values in data.columns.items():
        if name not in data.row_names or are_dates(values):
            continue
        different = len({*values.tolist()})
        what = f"{different:,} different values in {len(data):,} rows"
        called = data.called(name)
        if values.dtype.kind == "f" and _sorted_by_class(data.codes[np.argsort(values, kind="stable")]):
            text = f"C{called[1:]} counts rows that are sorted by class ({what}), so it gives the label away."
            yield Finding("row names", text, data.without([name]), (name,))
        else:
            text = f"C{called[1:]} seems to name or count the rows ({what}), so it says nothing about new ones."
            yield Finding("row names", text, data.without([name]), (name,), severity="note")


def _sorted_by_class(codes: Codes) -> bool:
    """Return whether rows in this order have the label of the row before much more often than by chance."""
    if len(codes) < _FEW_ROWS:
        return False
    shares = np.bincount(codes) / len(codes)
    chance, same = float((shares**2).sum()), float((codes[1:] == codes[:-1]).mean())
    return chance < 1 and (same - chance) / (1 - chance) > _SORTED


register("row names", find, order=50)
