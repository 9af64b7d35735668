"""Columns of numbers that are read as text, because cells hold something else too: words, or units such as %."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

from postmax.checking.catalogue import register
from postmax.checking.examined import Examined
from postmax.checking.finding import Finding
from postmax.data.notes import odd_cells

_NEARLY_ALL = 0.95
_WITH_UNIT = re.compile(r"([€$£¥]?) ?[+-]?[0-9][0-9.,']* ?([€$£¥%‰°]|[a-zA-Zµ]{1,3}[²³]?)?")


def find(data: Examined) -> Iterator[Finding]:
    """Yield the columns of text in which most values are numbers."""
    for name, values in data.texts.items():
        odd = odd_cells(values, data.decimal)
        if odd:
            shown = f"{str(values[odd[0]])[:40]!r} in {data.some(odd)}"
            text = f"C{data.called(name)[1:]} is read as text, because not all of its values are numbers: {shown}."
            remedy = "If these cells are missing, leave them empty."
            yield Finding("numbers and text", text, remedy, (name,), data.at(odd), "note")
        elif sign := unit(values):
            example = next(value for value in values.tolist() if value is not None)
            text = (
                f"C{data.called(name)[1:]} is read as text, because its numbers are written with {sign!r}: {example!r}."
            )
            yield Finding("units", text, "Write the numbers without it.", (name,))


def unit(values: npt.NDArray[Any]) -> str:
    """Return the sign or unit that nearly all values of a column of text have beside their number; empty if none.

    Example:
        >>> import numpy as np
        >>> unit(np.array(["$1,200", "$3"], dtype=object)), unit(np.array(["5 kg", "7 kg"], dtype=object))
        ('$', 'kg')
        >>> unit(np.array(["1a", "1b"], dtype=object))
        ''
    """
    present = [value.strip() for value in values.tolist() if value is not None and value.strip()]
    found: Counter[str] = Counter()
    for text, count in Counter(present).items():
        match = _WITH_UNIT.fullmatch(text)
        found[(match[1] or match[2] or "") if match else ""] += count
    sign, count = max(found.items(), key=lambda entry: entry[1], default=("", 0))
    return sign if count >= _NEARLY_ALL * len(present) and len(set(present)) > 1 else ""


register("numbers and text", find, order=75)
