"""The rows of a file that are looked at: all of a small one, some of a large one, with its copies together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np

from postmax.checking.examined import Codes
from postmax.checking.from_memory import lowest, most_rows
from postmax.checking.hashing import Hashes, row_hashes
from postmax.data.column_names import find_label
from postmax.data.columns import FileColumns
from postmax.data.label_text import label_values, merged, stripped
from postmax.data.number_text import Decimal
from postmax.data.problems import Problems
from postmax.data.reading import ReadingOptions
from postmax.row_names import RowNames

_SLACK = 1.5


class FileSample:
    """Collects rows while a file is read, and forgets those with the highest hashes when there are too many.

    Args:
        reading: How the file is read.
    """

    def __init__(self, reading: ReadingOptions) -> None:
        self.total = 0
        self.is_partial = False
        self._reading = reading
        self._label: str | None = None
        self._labels: Counter[str] = Counter()
        self._blocks: list[FileColumns] = []
        self._places: list[Codes] = []
        self._hashes: list[Hashes] = []
        self._limit: np.uint64 | None = None

    def add(self, block: FileColumns) -> None:
        """Take some more rows."""
        block = _without(block, self._reading.drop)
        if not self._blocks:
            left = [name for name in block.names if name not in self._reading.drop]
            self._label = find_label(left, self._reading.label, Problems("the file"))
        rows = len(next(iter(block.values.values()), ()))
        places = np.arange(self.total, self.total + rows)
        self.total += rows
        if self._label is not None and self._label in block.values:
            self._labels.update(str(value) for value in stripped(block.values[self._label]).tolist())
        if self._limit is not None:
            hashes = self._hash(block)
            near = np.flatnonzero(hashes <= self._limit)
            block, places = _part(block, near), places[near]
            self._hashes.append(hashes[near])
        self._blocks.append(block)
        self._places.append(places)
        if sum(map(len, self._places)) > _SLACK * most_rows(len(block.names)):
            self._forget()

    def file(self) -> FileColumns:
        """Return the columns of the rows that are looked at, without those that are dropped."""
        if sum(map(len, self._places)) > most_rows(len(self._blocks[0].names)):
            self._forget()
        return _joined(self._blocks)

    @property
    def places(self) -> Codes:
        """The places of these rows in the file."""
        return np.concatenate(self._places)

    def counts(self, decimal: Decimal) -> dict[str, int]:
        """Return how many rows of the whole file have each label."""
        texts = np.array(list(self._labels), dtype=object)
        names = label_values(texts, decimal)
        spelt = merged(np.repeat(texts, list(self._labels.values()))) if self._reading.merge_labels else None
        if spelt is not None:
            return dict(Counter(spelt.tolist()))
        found: Counter[str] = Counter()
        for name, count in zip(names.tolist(), self._labels.values(), strict=True):
            whole = isinstance(name, float) and name.is_integer()
            found[str(int(name)) if whole else str(name)] += count
        return dict(found)

    def _hash(self, block: FileColumns) -> Hashes:
        features = [values for name, values in block.values.items() if name != self._label]
        return row_hashes(features, len(next(iter(block.values.values()), ())))

    def _forget(self) -> None:
        block, places = _joined(self._blocks), self.places
        hashes = self._hash(block) if self._limit is None else np.concatenate(self._hashes)
        chosen = lowest(hashes, most_rows(len(block.names)))
        self.is_partial = self.is_partial or len(chosen) < len(places)
        self._blocks, self._places, self._hashes = [_part(block, chosen)], [places[chosen]], [hashes[chosen]]
        self._limit = hashes[chosen].max()


def _without(block: FileColumns, dropped: Collection[str]) -> FileColumns:
    values = {name: column for name, column in block.values.items() if name not in dropped}
    unusable = {name: reason for name, reason in block.unusable.items() if name not in dropped}
    return FileColumns(block.names, values, unusable, block.rows)


def _part(block: FileColumns, rows: Codes) -> FileColumns:
    values = {name: column[rows] for name, column in block.values.items()}
    return FileColumns(block.names, values, block.unusable, block.rows.of(rows.tolist()))


def _joined(blocks: list[FileColumns]) -> FileColumns:
    first = blocks[0]
    values = {name: np.concatenate([block.values[name] for block in blocks]) for name in first.values}
    rows = first.rows
    if rows.numbers is not None:
        rows = RowNames(rows.kind, [int(number) for block in blocks for number in block.rows.numbers or ()])
    return FileColumns(first.names, values, first.unusable, rows)
