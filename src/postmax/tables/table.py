"""A table of results: the values that were measured, beside the values that the paper reports."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Cell:
    """One cell: a configuration that was measured with several seeds.

    Attributes:
        values: Test accuracy in per cent, one value for each seed.
        failed: The number of seeds whose run diverged. They have no value, so they are counted here.
        paper: The value that the paper reports, or None.
        best: Whether the mean is the highest of the cells it is compared with.
        p_value: The p-value of a paired test against the best cell, corrected for the number of comparisons (Holm).
            None for the best cell itself, and where there is nothing to test.
        run_ids: The runs that the values come from.
        seeds: The seeds of the values, in the same order.
        missing: The number of seeds that are still to be run.
        overlap: The number of test rows divided by the number of training rows, if each seed splits the same rows anew;
            else 0.
    """

    values: tuple[float, ...] = ()
    failed: int = 0
    paper: float | None = None
    best: bool = False
    p_value: float | None = None
    run_ids: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    missing: int = 0
    overlap: float = 0.0

    @property
    def n(self) -> int:
        """The number of seeds that have a value."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """The mean over the seeds; NaN without seeds."""
        return statistics.fmean(self.values) if self.values else float("nan")

    @property
    def std(self) -> float:
        """The sample standard deviation over the seeds; NaN for fewer than two seeds."""
        return statistics.stdev(self.values) if self.n > 1 else float("nan")

    @property
    def complete(self) -> bool:
        """Whether every seed has a value. Other cells are not compared: their mean lacks the seeds that failed."""
        return bool(self.values) and not self.failed and not self.missing


@dataclass(frozen=True)
class Panel:
    """Rows and columns under one heading. A combination of row and column that is not run has no cell."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A whole table of results.

    Attributes:
        name: The name under which `postmax reproduce` finds the table.
        title: The heading of the table.
        scale: The name of the scale that was run.
        selection: The rule by which the epoch was selected: "last", "noisy-val" or "oracle".
        compare: Which cells compete for the best: the "rows" of each column, or the "columns" of each row.
        panels: One or more panels.
        note: What a reader should know about the scale.
        comparable: Whether the reported values are for the same network and data. Only then a difference is shown.
        tuned: The settings that were tuned on noisy validation labels, by row.
    """

    name: str
    title: str
    scale: str
    selection: str
    compare: str
    panels: tuple[Panel, ...]
    note: str = ""
    comparable: bool = True
    tuned: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def along(self) -> str:
        """Within what the best cell is the best: "row" or "column"."""
        return "row" if self.compare == "columns" else "column"

    def difference(self, cell: Cell) -> float | None:
        """Return the measured mean minus the reported value; None where they cannot be compared."""
        if cell.paper is None or not cell.values or not self.comparable:
            return None
        return cell.mean - cell.paper
