"""The rules by which the epoch of a result is selected, in words: the same on the page and in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from postmax.tables.table import Table

# What anybody can choose comes first, what nobody can last.
RULES = {
    "last": "last epoch",
    "noisy-val": "best epoch on noisy validation labels",
    "oracle": "oracle, best epoch on the test set: nobody can choose it without the truth",
}


def ordered(tables: Sequence[Table], headline: str) -> list[Table]:
    """The table of the headline's rule first, then the others as they stand in `RULES`."""
    order = list(RULES)
    return sorted(tables, key=lambda table: (table.selection != headline, order.index(table.selection)))
