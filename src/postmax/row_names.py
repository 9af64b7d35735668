"""How messages call rows: by the line of a text file, by the place in another file, or by the index in Python.

A person looks for the row with the tool at hand. An editor shows the lines of a text file, and the header is line 1.
Parquet, `.npz`, `.npy` and IDX files have no lines, so their rows are counted from the 1st. What a program hands to a
function has an index, counted from 0. An image of a folder is called by the name of its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

_SHOWN = 5


@dataclass(frozen=True)
class RowNames:
    """The names of rows in messages.

    Attributes:
        kind: What a row is called by.
        numbers: The number of each row: its line, or its place counted from 1; or the name of its file. Places and
            indices need none if the rows are all rows from the first on.

    Example:
        >>> INDICES.one(12), PLACES.one(12), RowNames("line", [2, 3, 7]).one(2)
        ('index 12', 'the 13th row', 'line 7')
        >>> INDICES.some([1, 4]), PLACES.some([0, 1, 2, 3, 10, 20])
        ('indices 1, 4', 'the 1st, 2nd, 3rd, 4th, 11th, … rows')
    """

    kind: Literal["line", "place", "index", "file"]
    numbers: Sequence[int] | Sequence[str] | None = None

    def one(self, row: int) -> str:
        """Return the name of one row."""
        number = self._number(row)
        return {"place": f"the {number} row", "file": number}.get(self.kind, f"{self.kind} {number}")

    def some(self, rows: Iterable[int]) -> str:
        """Return the names of rows. Of many rows the first five are named."""
        chosen = [int(row) for row in islice(rows, _SHOWN + 1)]
        if len(chosen) == 1:
            return self.one(chosen[0])
        numbers = [self._number(row) for row in chosen]
        shown = ", ".join(numbers[:_SHOWN]) + (", …" if len(numbers) > _SHOWN else "")
        place, index = f"the {shown} rows", f"indices {shown}"
        return {"line": f"lines {shown}", "place": place, "index": index, "file": shown}[self.kind]

    def of(self, rows: Iterable[int]) -> RowNames:
        """Return the names of some of the rows, which are called as before.

        Example:
            >>> PLACES.of([4, 7]).one(0), RowNames("line", [2, 3, 7]).of([2]).one(0)
            ('the 5th row', 'line 7')
        """
        if self.numbers is not None:
            return RowNames(self.kind, [self.numbers[row] for row in rows])  # type: ignore[arg-type]  # of one type
        return RowNames(self.kind, [int(row) + (self.kind != "index") for row in rows])

    def _number(self, row: int) -> str:
        number = row + (self.kind != "index") if self.numbers is None else self.numbers[row]
        return _ordinal(int(number)) if self.kind == "place" else str(number)


INDICES = RowNames("index")
PLACES = RowNames("place")


def _ordinal(number: int) -> str:
    special = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number % 100 in (11, 12, 13) else special.get(number % 10, 'th')}"
