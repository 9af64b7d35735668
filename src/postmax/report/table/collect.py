"""Collect the content of a table's page from the folders of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from postmax.report.content import Group, Series
from postmax.report.selection_words import headline_first
from postmax.report.settings import common_settings, differing_settings, settings_as_yaml
from postmax.report.table.content import Run, TableContent
from postmax.report.table.matrices import matrices
from postmax.runs.folder import RunFolder
from postmax.tables.cells import TableJob
from postmax.tables.spec import TableSpec
from postmax.tables.table import Table
from postmax.tables.tabulate import tabulate
from postmax.train.config import Selection
from postmax.train.records import EpochRecord, RunResult

_Results = dict[str, RunResult]


def tabulate_all(spec: TableSpec, scale: str, jobs: Sequence[TableJob], store: str | Path) -> list[Table]:
    """Return the table under every selection rule that its runs have recorded.

    The rule that all configurations name comes first; where they name different rules, the last epoch does.
    """
    selections: list[Selection] = ["last", "oracle"]
    if all(job.config.data.validation_share for job in jobs):
        selections.insert(1, "noisy-val")
    named = {job.config.selection for job in jobs}
    headline = named.pop() if len(named) == 1 else "last"
    selections.sort(key=lambda rule: headline_first(rule, headline))
    return [tabulate(spec, scale, jobs, store, rule) for rule in selections]


def collect(
    spec: TableSpec, jobs: Sequence[TableJob], store: str | Path, tables: Sequence[Table], *, command: str = ""
) -> TableContent:
    """Return what the page says about the runs. Runs that failed or are not done are listed as such.

    Args:
        spec: The table.
        jobs: The runs of the table.
        store: The folder that holds the run folders.
        tables: The table under each selection rule, the headline first.
        command: The command that makes the table again.

    Raises:
        DataError: If a result or the metrics of a run are damaged.
    """
    store = Path(store).expanduser()
    done = [job for job in jobs if RunFolder(store / job.run_id).state == "done"]
    results = {job.run_id: RunFolder(store / job.run_id).result() for job in done}
    common = common_settings([job.config for job in jobs])
    return TableContent(
        title=spec.title,
        about=spec.about,
        source=spec.source,
        tables=tuple(tables),
        groups=_groups(spec, tables[0], done, results, store),
        matrices=matrices(done, results, {column.name for column in spec.columns if column.reference}),
        configuration=settings_as_yaml(common),
        runs=tuple(_run(job, store, results.get(job.run_id), differing_settings(job.config, common)) for job in jobs),
        environment=_merged(result["environment"] for result in results.values()),
        command=command,
        seconds=sum(result["seconds"] for result in results.values()),
        headline=tables[0].selection,
    )


def _groups(
    spec: TableSpec, table: Table, jobs: Sequence[TableJob], results: _Results, store: Path
) -> tuple[Group, ...]:
    metrics = {job.run_id: tuple(RunFolder(store / job.run_id).metrics()) for job in jobs}
    references = {column.name for column in spec.columns if column.reference}
    groups = []
    for panel in table.panels:
        for row in panel.rows:
            series = (_series(panel.title, row, name, jobs, results, metrics, references) for name in panel.columns)
            groups.append(Group(panel.title, row, tuple(one for one in series if one is not None)))
    return tuple(group for group in groups if group.series)


def _series(
    panel: str,
    row: str,
    column: str,
    jobs: Sequence[TableJob],
    results: _Results,
    metrics: dict[str, tuple[EpochRecord, ...]],
    references: set[str],
) -> Series | None:
    """Return a cell over time, from all runs that have seeds of it; None if no run is done."""
    found = [
        (job, place)
        for job in jobs
        for place in job.placements
        if (place.panel, place.row, place.column) == (panel, row, column)
    ]
    if not found:
        return None
    readings = [seed["readings"][place.reading] for job, place in found for seed in results[job.run_id]["seeds"]]
    return Series(
        label=column,
        metrics=tuple(record for job, _ in found for record in metrics[job.run_id]),
        reliability=tuple(reading["reliability"] for reading in readings),
        reading=found[0][1].reading,
        reference=column in references,
    )


def _run(job: TableJob, store: Path, result: RunResult | None, settings: str) -> Run:
    folder = RunFolder(store / job.run_id)
    where = job.label
    if result is None:
        where += f" ({folder.failure() or 'not done'})"
    return Run(
        run_id=job.run_id,
        where=where,
        settings=settings,
        folder=_without_home(folder.path),
        seconds=result["seconds"] if result else 0.0,
        noise={seed["seed"]: seed["noise"] for seed in result["seeds"]} if result else {},
    )


def _without_home(path: Path) -> str:
    """Return a path without the name of the account, because pages are passed on to others."""
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


def _merged(environments: Iterable[dict[str, str]]) -> dict[str, str]:
    """Return all values of each name: the runs of one table may come from several machines."""
    found: dict[str, list[str]] = {}
    for environment in environments:
        for name, value in environment.items():
            if value not in found.setdefault(name, []):
                found[name].append(value)
    return {name: " / ".join(values) for name, values in found.items()}
