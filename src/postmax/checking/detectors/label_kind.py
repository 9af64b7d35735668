"""Labels that are no classes: dates, names of rows, measurements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from postmax.checking.catalogue import register
from postmax.checking.examined import Examined
from postmax.checking.finding import Finding
from postmax.checking.values import are_dates
from postmax.wording import advice

_MANY, _PER_CLASS = 20, 10
_NEARLY_ALL, _FEW_ROWS = 0.5, 20


def find(data: Examined) -> Iterator[Finding]:
    """Yield that the labels are dates, or nearly all different, or numbers that measure something."""
    names = [name for name, count in data.counts.items() if count]
    count, rows = len(names), data.total
    where = "The labels" if data.label is None else f"The labels in column {data.label!r}"
    columns = () if data.label is None else (data.label,)
    other = advice(python="Give other labels", command="Name another column with --label")
    texts = np.array(names, dtype=object)
    values = texts.astype(np.float64) if all(map(_is_whole, names)) else texts
    if are_dates(values) and count > 1:
        text = f"{where} are dates, such as {names[0]!r}: {count:,} different ones."
        yield Finding("dates", text, f"{other}, or make classes of them, such as the months.", columns)
    elif rows >= _FEW_ROWS and count > _NEARLY_ALL * rows:
        text = f"{where} are nearly all different: {count:,} in {rows:,} rows, such as {names[0][:60]!r}."
        yield Finding("near-unique labels", text, f"{other}: these name the rows or measure something.", columns)
    elif values.dtype.kind == "f" and count >= _MANY and rows < _PER_CLASS * count:
        low, high = int(values.min()), int(values.max())
        text = f"{where} look like a measurement: {count:,} different numbers from {low} to {high} in {rows:,} rows."
        yield Finding("continuous labels", text, f"{other}, or make a few classes of ranges of numbers.", columns)


def _is_whole(name: str) -> bool:
    return name.lstrip("-").isdecimal() and len(name) <= 15


register("label kind", find, order=20)
