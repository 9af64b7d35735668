"""From finished runs to a table: values by seed, the best of each comparison, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from postmax.errors import DataError, InputError
from postmax.registry import unknown_name
from postmax.runs.folder import RunFolder
from postmax.tables.jobs import TableJob, Use
from postmax.tables.parts import Scale
from postmax.tables.spec import Protocol
from postmax.tables.statistics import holm, paired_test
from postmax.tables.table import Cell, Panel, Table
from postmax.train.config import DataConfig, Selection
from postmax.train.records import Evaluation, RunResult

_Key = tuple[str, str]


def tabulate(
    protocol: Protocol, scale: str, jobs: Iterable[TableJob], store: str | Path, selection: Selection = "last"
) -> Table:
    """The table, as far as its runs are done; what is not has no values yet.

    Args:
        protocol: The table.
        scale: The scale the jobs are of.
        jobs: Its runs; see `postmax.tables.jobs.jobs`.
        store: The folder of run folders.
        selection: The rule by which the epoch is selected.

    Raises:
        DataError: If a result is damaged.
        InputError: If the runs have not recorded this selection or the reading that a column shows.
    """
    if selection not in get_args(Selection):
        raise unknown_name("selection", selection, get_args(Selection))
    size = protocol.scale(scale)
    jobs = tuple(jobs)
    cells = _collect(jobs, Path(store).expanduser(), selection)
    panels = tuple(_panel(protocol, part.name, cells) for part in protocol.panels)
    return Table(
        name=protocol.name,
        title=protocol.title,
        scale=scale,
        selection=selection,
        compare=protocol.compare,
        panels=tuple(panel for panel in panels if panel.cells),
        note=" ".join(filter(None, (size.note, _untuned(protocol, size, jobs)))),
        comparable=size.comparable,
        tuned={use.row: dict(use.tuned) for job in jobs for use in job.uses if use.tuned},
    )


def _untuned(protocol: Protocol, size: Scale, jobs: Iterable[TableJob]) -> str:
    """Which rows have no chosen settings where others have, or could have; empty if there are none."""
    tuned = {use.row: bool(use.tuned) for job in jobs for use in job.uses}
    meant = [row.name for row in protocol.rows if size.tuned_by is not None or (size.tuning is not None and row.grid)]
    found = [name for name in meant if tuned.get(name) is False]
    return f"Not tuned, but trained as the table says: {', '.join(found)}." if found else ""


def _collect(jobs: Iterable[TableJob], store: Path, selection: str) -> dict[tuple[str, str, str], Cell]:
    """Values, failures and what is missing, by panel, row and column."""
    cells: dict[tuple[str, str, str], Cell] = {}
    for job in jobs:
        folder = RunFolder(store / job.run_id)
        state = folder.state
        result = folder.result() if state == "done" else None
        for use in job.uses:
            cell = cells.get((use.panel, use.row, use.column), Cell())
            if result is not None:
                cell = _extended(cell, job, result, _values(result, use, selection, folder.path))
            elif state == "failed":
                cell = replace(cell, failed=cell.failed + len(job.config.seeds))
            else:
                cell = replace(cell, missing=cell.missing + len(job.config.seeds))
            cells[use.panel, use.row, use.column] = cell
    return cells


def _extended(cell: Cell, job: TableJob, result: RunResult, values: Sequence[tuple[int, float]]) -> Cell:
    return replace(
        cell,
        values=(*cell.values, *(value for _, value in values)),
        seeds=(*cell.seeds, *(seed for seed, _ in values)),
        run_ids=(*cell.run_ids, job.run_id),
        overlap=max(cell.overlap, _overlap(job.config.data, result)),
    )


def _overlap(data: DataConfig, result: RunResult) -> float:
    """How much the splits of two seeds have in common; 0 where all seeds are judged by the same held-out rows."""
    if data.split != "random" or data.test_path is not None:
        return 0.0
    return result["test_rows"] / result["train_rows"]


def _values(result: RunResult, use: Use, selection: str, where: Path) -> list[tuple[int, float]]:
    """(seed, per cent) of every seed of a run."""
    values = []
    for seed in result["seeds"]:
        if use.reading not in seed["readings"]:
            raise DataError(f"{where}: the run has no reading {use.reading!r}, only {', '.join(seed['readings'])}.")
        evaluation = seed["readings"][use.reading].get(selection.replace("-", "_"))
        if evaluation is None:
            raise InputError(
                f"{where}: the run has not recorded {selection}; noisy-val needs data.validation_share=0.1 or so."
            )
        values.append((seed["seed"], 100 * cast("Evaluation", evaluation)["accuracy"]))
    return values


def _panel(protocol: Protocol, title: str, found: dict[tuple[str, str, str], Cell]) -> Panel:
    cells = {
        (row, column): replace(cell, paper=protocol.figure(title, row, column))
        for (panel, row, column), cell in found.items()
        if panel == title
    }
    rows = tuple(part.name for part in protocol.rows if any(part.name == row for row, _ in cells))
    columns = tuple(part.name for part in protocol.columns if any(part.name == column for _, column in cells))
    competing = tuple(part.name for part in protocol.columns if not part.reference)
    for group in _groups(protocol.compare, rows, [column for column in columns if column in competing]):
        cells.update(_compared({key: cells[key] for key in group if key in cells and cells[key].complete}))
    return Panel(title, rows, columns, cells)


def _groups(compare: str, rows: Sequence[str], columns: Sequence[str]) -> Iterator[list[_Key]]:
    """The cells that compete with each other."""
    if compare == "rows":
        yield from ([(row, column) for row in rows] for column in columns)
    else:
        yield from ([(row, column) for column in columns] for row in rows)


def _compared(cells: dict[_Key, Cell]) -> dict[_Key, Cell]:
    """With the best marked, and how sure it is that each other one is worse; one alone is not the best of anything.

    All are complete: a mean without the seeds that failed would win by what it leaves out.
    """
    if len(cells) < 2:
        return cells
    # Means of equal values may differ in the last bit.
    means = {key: round(cell.mean, 9) for key, cell in cells.items()}
    top = max(means.values())
    best = next(key for key in cells if means[key] == top)
    others = [key for key in cells if means[key] < top]
    tests = [_p_value(cells[best], cells[key]) for key in others]
    result = {key: replace(cell, best=means[key] == top) for key, cell in cells.items()}
    for key, p_value in zip(others, holm(tests), strict=True):
        result[key] = replace(result[key], p_value=p_value)
    return result


def _p_value(best: Cell, other: Cell) -> float | None:
    return paired_test(_by_seed(best), _by_seed(other), max(best.overlap, other.overlap)).p_value


def _by_seed(cell: Cell) -> dict[int, float]:
    return dict(zip(cell.seeds, cell.values, strict=True))
