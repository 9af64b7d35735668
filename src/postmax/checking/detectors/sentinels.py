"""Infinite numbers, and numbers such as −999 that mean that a value is missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from postmax.checking.catalogue import register
from postmax.checking.examined import Examined, Numbers
from postmax.checking.finding import Finding
from postmax.data.problems import in_words

_NINES = (99, 999, 9999, 99999, 999999)
_LIMITS = (-32768, 32767, -(2**31), 2**31 - 1)
_HUGE, _TIMES = 1e15, 2


def find(data: Examined) -> Iterator[Finding]:
    """Yield the columns in which a number far from all others seems to mean that the value is missing."""
    for name, values in data.numbers.items():
        if np.isinf(values).any() and data.label is None:  # else the reader of the file has said so
            rows = np.flatnonzero(np.isinf(values))
            text = f"C{data.called(name)[1:]} holds infinite numbers in {data.some(rows)} ({len(rows):,} in all)."
            yield Finding("infinite values", text, "Correct them, or leave these cells empty.", (name,), data.at(rows))
        found = sentinel(values[np.isfinite(values)])
        if found is not None:
            rows = np.flatnonzero(values == found)
            shown = f"{found:g}"
            text = (
                f"C{data.called(name)[1:]} holds {shown} in {data.some(rows)} ({len(rows):,} rows), far from all other "
                "values: it seems to mean that the value is missing."
            )
            fill = in_words({"missing": ["median"]})
            remedy = f"Leave these cells empty, and fill them in with {fill}." if data.named else "Make it NaN."
            yield Finding("sentinel values", text, remedy, (name,), data.at(rows))


def sentinel(values: Numbers) -> float | None:
    """Return a number that seems to mean "missing": it repeats, is written with nines, and lies far from the others.

    Example:
        >>> sentinel(np.array([1.0, 5.0, 3.0, 2.0, -999.0, -999.0]))
        -999.0
        >>> sentinel(np.array([1.0, 500.0, 730.0, 999.0, 999.0]))
    """
    if len(values) < _TIMES + 2:
        return None
    for extreme in (float(values.min()), float(values.max())):
        others = values[values != extreme]
        known = abs(extreme) in _NINES or extreme in _LIMITS or abs(extreme) >= _HUGE
        if not known or len(values) - len(others) < _TIMES or len(others) < _TIMES:
            continue
        spread = float(others.max() - others.min())
        if np.abs(others - extreme).min() > max(spread, 1e-12):
            return extreme
    return None


register("sentinel values", find, order=90)
