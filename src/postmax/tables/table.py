"""Results as a table: what we measured, beside what was reported."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Cell:
    """One configuration, measured with several seeds.

    Attributes:
        values: Test accuracy in per cent, one for each seed.
        failed: Seeds whose run diverged, which no mean can hide.
        paper: What the paper reports, if it does.
        best: Whether the mean is the highest of those it is compared with.
        p_value: Of a paired test against the best one, corrected for the number of comparisons (Holm); None for the
            best one and where there is nothing to test.
        run_ids: The runs the values come from.
        seeds: The seeds of the values, in the same order.
        missing: Seeds that are still to be run.
        overlap: Test rows by training rows where each seed has its own random split of the same rows, else 0.
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
        """How many seeds."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """Over the seeds; NaN if there are none."""
        return statistics.fmean(self.values) if self.values else float("nan")

    @property
    def std(self) -> float:
        """The sample standard deviation; NaN for fewer than two seeds."""
        return statistics.stdev(self.values) if self.n > 1 else float("nan")

    @property
    def complete(self) -> bool:
        """Whether every seed has a value: a mean of those that were lucky is compared with nothing."""
        return bool(self.values) and not self.failed and not self.missing


@dataclass(frozen=True)
class Panel:
    """Rows and columns under one heading; a combination nobody asked for has no cell."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A whole table.

    Attributes:
        name: What `postmax reproduce` knows it by.
        title: What it is called.
        scale: Which of the protocol's scales was run.
        selection: The rule by which epochs were selected: "last", "noisy-val" or "oracle".
        compare: Whether the best is sought along "rows" (within each column) or "columns" (within each row).
        panels: One or more.
        note: What a reader should know about the scale.
        comparable: Whether the paper's figures are for the same network and data, so that a difference means something.
        tuned: The settings that were chosen on noisy validation labels, by row.
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
        """What the best is the best of: its "row" or its "column"."""
        return "row" if self.compare == "columns" else "column"

    def difference(self, cell: Cell) -> float | None:
        """Ours minus the paper's, where that means something."""
        if cell.paper is None or not cell.values or not self.comparable:
            return None
        return cell.mean - cell.paper
