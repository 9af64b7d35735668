"""Print what a network learnt of wrong labels, for every finished run of a table, as the Markdown of docs/results.

    python benchmarks/memorised.py pixels postmax-results
    python benchmarks/memorised.py memorising postmax-results --rows all --columns all

The table says how accurate a row is. This says why: which labels its networks took over, how well its probabilities
fit, and what the training cost. All of it is read from the folders of the runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from postmax import tables
from postmax.runs import RunFolder
from postmax.tables.jobs import jobs
from postmax.train.records import EpochRecord

UNKNOWN = "–"
MEASURED = {
    "test_accuracy": "test accuracy",
    "wrong_labels_learnt": "wrong labels learnt",
    "wrong_labels_recovered": "their true class predicted",
    "right_labels_learnt": "right labels learnt",
    "calibration_error": "calibration error",
}


class Cell(NamedTuple):
    """The finished runs of one cell: what was recorded after each epoch of each seed."""

    row: str
    column: str
    runs: tuple[Sequence[EpochRecord], ...]

    def last(self, key: str) -> list[float]:
        """Return a metric of the last epoch of each run; nothing where it was not recorded."""
        found = [run[-1].get(key) for run in self.runs]
        return [float(value) for value in found if isinstance(value, (int, float))]

    def total(self, key: str) -> list[float]:
        """Return the sum of a metric over the epochs of each run."""
        return [sum(float(record.get(key) or 0.0) for record in run) for run in self.runs]  # type: ignore[arg-type, misc]


def finished(
    table: str, folder: Path, seeds: int, rows: Iterable[str] | None, columns: Iterable[str] | None
) -> Iterator[Cell]:
    """Return the cells of a table, at the scale `pixels`, that have at least one finished run."""
    found: dict[tuple[str, str], list[Sequence[EpochRecord]]] = {}
    for job in jobs(tables.load(table), "pixels", seeds=seeds, rows=rows, columns=columns):
        run = RunFolder(folder / "runs" / job.config.run_id)
        for place in job.placements if run.state == "done" else ():
            found.setdefault((place.row, place.column), []).append(run.metrics())
    return (Cell(row, column, tuple(runs)) for (row, column), runs in found.items())


def per_cent(values: Sequence[float]) -> str:
    """Return the mean of shares in per cent, with their standard deviation if there are several."""
    if not values:
        return UNKNOWN
    spread = f" ± {100 * stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * fmean(values):.1f}{spread} %"


def markdown(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table whose first two columns are text."""
    rule = ["---", "---", *["---:"] * (len(heads) - 2)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *lines))


def summary(cells: Iterable[Cell]) -> str:
    """Return one line for each cell: what was measured in the last epoch, and what the training cost."""
    lines = []
    for cell in cells:
        # Old runs did not count their operations.
        operations = fmean(cell.total("operations"))
        cost = [f"{operations:.1e}" if operations else UNKNOWN, f"{fmean(cell.total('seconds')) / 60:.0f}"]
        measured = [per_cent(cell.last(key)) for key in MEASURED]
        lines.append([cell.column, cell.row, str(len(cell.runs)), *measured, *cost])
    return markdown(["column", "row", "n", *MEASURED.values(), "operations", "minutes"], lines)


def curves(cells: Iterable[Cell], key: str) -> str:
    """Return a metric after each epoch, one line for each cell, as whole per cent of the first seed."""
    lines = []
    for cell in cells:
        values = [record.get(key) for record in cell.runs[0]]
        if any(value is not None for value in values):
            shown = [UNKNOWN if value is None else f"{100 * float(value):.0f}" for value in values]  # type: ignore[arg-type]
            lines.append([cell.column, cell.row, *shown])
    epochs = max((len(line) - 2 for line in lines), default=0)
    return markdown(["column", "row", *(str(number + 1) for number in range(epochs))], lines)


def main() -> None:
    """Print the summary and the curves of a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("table")
    parser.add_argument("folder", type=Path, help="the folder that `postmax reproduce --out` wrote to")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", nargs="*")
    parser.add_argument("--columns", nargs="*")
    given = parser.parse_args()
    cells = list(finished(given.table, given.folder, given.seeds, given.rows, given.columns))
    print(summary(cells))
    for key in ("wrong_labels_learnt", "wrong_labels_recovered"):
        print(f"\n{key.replace('_', ' ')}, in per cent, after each epoch\n\n{curves(cells, key)}")


if __name__ == "__main__":
    main()
