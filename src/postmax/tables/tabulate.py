"""Make a table of results from finished runs: the values by seed, the best of each comparison, and its p-values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from postmax.errors import DataError, InputError
from postmax.registry import unknown_name
from postmax.runs.folder import RunFolder
from postmax.tables.cells import Placement, TableJob
from postmax.tables.parts import Scale
from postmax.tables.spec import TableSpec
from postmax.tables.statistics import holm, paired_test
from postmax.tables.table import Cell, Panel, Table
from postmax.train.config import DataConfig, Selection
from postmax.train.records import Evaluation, RunResult

_Key = tuple[str, str]


def tabulate(
    spec: TableSpec, scale: str, jobs: Iterable[TableJob], store: str | Path, selection: Selection = "last"
) -> Table:
    """Return the table of results. Cells whose runs are not done have no values yet.

    Args:
        spec: The table.
        scale: The scale of the jobs.
        jobs: The runs of the table; see `postmax.tables.jobs.jobs`.
        store: The folder that holds the run folders.
        selection: The rule by which the epoch is selected.

    Raises:
        DataError: If a result is damaged.
        InputError: If the runs have not recorded this selection or the reading that a column shows.
    """
    if selection not in get_args(Selection):
        raise unknown_name("selection", selection, get_args(Selection))
    size = spec.scale(scale)
    jobs = tuple(jobs)
    cells = _collect(jobs, Path(store).expanduser(), selection)
    panels = tuple(_panel(spec, part.name, cells) for part in spec.panels)
    return Table(
        name=spec.name,
        title=spec.title,
        scale=scale,
        selection=selection,
        compare=spec.compare,
        panels=tuple(panel for panel in panels if panel.cells),
        note=" ".join(filter(None, (size.note, _untuned(spec, size, jobs)))),
        comparable=size.comparable,
        tuned={place.row: dict(place.tuned) for job in jobs for place in job.placements if place.tuned},
    )


def _untuned(spec: TableSpec, size: Scale, jobs: Iterable[TableJob]) -> str:
    """Return a sentence that names the rows without tuned settings at a scale with tuning; empty if there are none."""
    tuned = {place.row: bool(place.tuned) for job in jobs for place in job.placements}
    meant = [row.name for row in spec.rows if size.tuned_by is not None or (size.tuning is not None and row.grid)]
    found = [name for name in meant if tuned.get(name) is False]
    return f"Not tuned, but trained as the table says: {', '.join(found)}." if found else ""


def _collect(jobs: Iterable[TableJob], store: Path, selection: str) -> dict[tuple[str, str, str], Cell]:
    """Return the cells with their values, failures and missing seeds, by panel, row and column."""
    cells: dict[tuple[str, str, str], Cell] = {}
    for job in jobs:
        folder = RunFolder(store / job.run_id)
        state = folder.state
        result = folder.result() if state == "done" else None
        for place in job.placements:
            cell = cells.get((place.panel, place.row, place.column), Cell())
            if result is not None:
                cell = _extended(cell, job, result, _values(result, place, selection, folder.path))
            elif state == "failed":
                cell = replace(cell, failed=cell.failed + len(job.config.seeds))
            else:
                cell = replace(cell, missing=cell.missing + len(job.config.seeds))
            cells[place.panel, place.row, place.column] = cell
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
    """Return test rows by training rows if each seed splits the rows anew, else 0."""
    if data.split != "random" or data.test_path is not None:
        return 0.0
    return result["test_rows"] / result["train_rows"]


def _values(result: RunResult, place: Placement, selection: str, where: Path) -> list[tuple[int, float]]:
    """Return (seed, test accuracy in per cent) for every seed of a run."""
    values = []
    for seed in result["seeds"]:
        if place.reading not in seed["readings"]:
            raise DataError(f"{where}: the run has no reading {place.reading!r}, only {', '.join(seed['readings'])}.")
        evaluation = seed["readings"][place.reading].get(selection.replace("-", "_"))
        if evaluation is None:
            raise InputError(
                f"{where}: the run has not recorded {selection}; noisy-val needs data.validation_share, such as 0.1."
            )
        values.append((seed["seed"], 100 * cast("Evaluation", evaluation)["accuracy"]))
    return values


def _panel(spec: TableSpec, title: str, found: dict[tuple[str, str, str], Cell]) -> Panel:
    cells = {
        (row, column): replace(cell, paper=spec.reported_value(title, row, column))
        for (panel, row, column), cell in found.items()
        if panel == title
    }
    rows = tuple(part.name for part in spec.rows if any(part.name == row for row, _ in cells))
    columns = tuple(part.name for part in spec.columns if any(part.name == column for _, column in cells))
    competing = tuple(part.name for part in spec.columns if not part.reference)
    for group in _groups(spec.compare, rows, [column for column in columns if column in competing]):
        cells.update(_compared({key: cells[key] for key in group if key in cells and cells[key].complete}))
    return Panel(title, rows, columns, cells)


def _groups(compare: str, rows: Sequence[str], columns: Sequence[str]) -> Iterator[list[_Key]]:
    """Yield the groups of cells that compete with each other."""
    if compare == "rows":
        yield from ([(row, column) for row in rows] for column in columns)
    else:
        yield from ([(row, column) for column in columns] for row in rows)


def _compared(cells: dict[_Key, Cell]) -> dict[_Key, Cell]:
    """Return the cells with the best marked and a p-value for each other one. A single cell is not marked.

    All cells given are complete: a mean without its failed seeds could win unfairly.
    """
    if len(cells) < 2:
        return cells
    # Rounded, because the means of equal values may differ in the last bit.
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
