"""Which classes are taken for which: kept for the epoch of every selection rule, while a run trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from postmax.train.metrics import Scores
from postmax.train.records import Confusion, EpochRecord, Reading
from postmax.train.selection import CRITERIA
from postmax.train.state import State


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
        rules = [rule for rule in CRITERIA if last or rule != "last"]
        for lane, (kept, record) in enumerate(zip(self._kept, records, strict=True)):
            for reading, found in scores.items():
                best = kept.setdefault(reading, {})
                values = {rule.replace("-", "_"): _value(record, reading, rule) for rule in rules}
                better = {
                    name: value
                    for name, value in values.items()
                    if value is not None and (name not in best or value > best[name].value)
                }
                if better:
                    cells = found.confusion(lane)  # goes through all rows, so only once
                    best.update((name, _Kept(value, record["epoch"], cells)) for name, value in better.items())

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

    def save(self) -> State:
        """Return what a checkpoint must know."""
        found = [
            (lane, reading, rule, kept)
            for lane, readings in enumerate(self._kept)
            for reading, rules in readings.items()
            for rule, kept in rules.items()
        ]
        tensors = {str(i): torch.tensor(kept.cells) for i, (*_, kept) in enumerate(found)}
        return State(tensors, {"kept": [[*where, kept.value, kept.epoch] for *where, kept in found]})

    def restore(self, state: State) -> None:
        """Put back what `save` returned."""
        self._kept = [{} for _ in self._kept]
        for i, (lane, reading, rule, value, epoch) in enumerate(state.values["kept"]):
            cells = [(label, predicted, rows) for label, predicted, rows in state.tensors[str(i)].tolist()]
            self._kept[lane].setdefault(reading, {})[rule] = _Kept(value, epoch, cells)


def _value(record: EpochRecord, reading: str, rule: str) -> float | None:
    """Return the number by which a rule judges an epoch; None if the run does not measure it."""
    prefix = f"{reading}_" if rule == "oracle" and reading != "model" else ""
    return cast("float | None", record.get(f"{prefix}{CRITERIA[rule]}"))
