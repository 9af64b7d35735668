"""Which classes are taken for which: kept for the epoch of every selection rule, while a run trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from postmax.train.metrics import Scores
from postmax.train.records import Confusion, EpochRecord, Reading
from postmax.train.selection import CRITERIA


@dataclass(frozen=True)
class _Kept:
    value: float
    epoch: int
    cells: list[tuple[int, int, int]]


class Confusions:
    """Keeps, for each seed, reading and selection rule, the confusions of the best epoch so far. Of equals, the first.

    The rules choose as `summarise` does: the oracle chooses for each reading by the accuracy of that reading.
    """

    def __init__(self, lanes: int) -> None:
        self._kept: list[dict[str, dict[str, _Kept]]] = [{} for _ in range(lanes)]

    def look(self, records: Sequence[EpochRecord], scores: Mapping[str, Scores], *, last: bool) -> None:
        """Look at an epoch that was judged; see `Keeper.look`."""
        for kept, lane in zip(self._kept, range(len(records)), strict=True):
            record: Any = records[lane]
            for reading, found in scores.items():
                best = kept.setdefault(reading, {})
                for rule, criterion in CRITERIA.items():
                    own = reading != "model" and rule == "oracle"
                    value = record.get(f"{reading}_{criterion}" if own else criterion)
                    if value is None or (rule == "last" and not last):
                        continue
                    name = rule.replace("-", "_")
                    if name not in best or value > best[name].value:
                        best[name] = _Kept(value, record["epoch"], found.confusion(lane))

    def of(self, lane: int, readings: Mapping[str, Reading]) -> dict[str, dict[str, Confusion]]:
        """Return the confusions of one seed that belong to its results.

        A run that was begun by an older version of postmax has lost the confusions of its first epochs. Then those of a
        later epoch were kept, and they are left out here.
        """
        found: dict[str, dict[str, Confusion]] = {}
        for reading, rules in self._kept[lane].items():
            result: Any = readings[reading]
            found[reading] = {
                rule: {"epoch": kept.epoch, "cells": kept.cells}
                for rule, kept in rules.items()
                if result[rule]["epoch"] == kept.epoch
            }
        return found

    def save(self) -> list[dict[str, dict[str, Any]]]:
        """Return what a checkpoint must know, as plain values."""
        return [
            {name: {rule: asdict(kept) for rule, kept in rules.items()} for name, rules in lane.items()}
            for lane in self._kept
        ]

    def restore(self, saved: Sequence[Mapping[str, Mapping[str, Any]]]) -> None:
        """Put back what `save` returned."""
        self._kept = [
            {name: {rule: _kept(**kept) for rule, kept in rules.items()} for name, rules in lane.items()}
            for lane in saved
        ]


def _kept(value: float, epoch: int, cells: Sequence[tuple[int, int, int]]) -> _Kept:
    return _Kept(value, epoch, [(label, predicted, rows) for label, predicted, rows in cells])
