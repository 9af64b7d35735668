"""Columns of numbers that are read as text, because some cells hold something else."""

from __future__ import annotations

from collections.abc import Iterator

from postmax.checking.catalogue import register
from postmax.checking.examined import Examined
from postmax.checking.finding import Finding
from postmax.data.notes import odd_cells


def find(data: Examined) -> Iterator[Finding]:
    """Yield the columns of text in which most values are numbers."""
    for name, values in data.texts.items():
        odd = odd_cells(values, data.decimal)
        if odd:
            shown = f"{str(values[odd[0]])[:40]!r} in {data.some(odd)}"
            text = f"C{data.called(name)[1:]} is read as text, because not all of its values are numbers: {shown}."
            remedy = "If these cells are missing, leave them empty."
            yield Finding("numbers and text", text, remedy, (name,), data.at(odd), "note")


register("numbers and text", find, order=75)
