"""From a store of runs to the content of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from postmax.report.content import Group, ReportContent, Run, Series
from postmax.report.matrices import matrices
from postmax.report.page import write_report
from postmax.report.rules import ordered
from postmax.report.settings import common_part, common_yaml, own_settings
from postmax.runs.folder import RunFolder
from postmax.tables.jobs import TableJob
from postmax.tables.spec import Protocol
from postmax.tables.table import Table
from postmax.tables.tabulate import tabulate
from postmax.train.config import Selection
from postmax.train.records import EpochRecord, RunResult

_Results = dict[str, RunResult]


def make_report(
    protocol: Protocol,
    scale: str,
    jobs: Sequence[TableJob],
    store: str | Path,
    folder: str | Path,
    *,
    command: str = "",
) -> Path:
    """Tabulate the runs under every selection rule they have recorded, and write the report; gives its path."""
    tables = tabulate_all(protocol, scale, jobs, store)
    return write_report(collect(protocol, jobs, store, tables, command=command), Path(folder).expanduser())


def tabulate_all(protocol: Protocol, scale: str, jobs: Sequence[TableJob], store: str | Path) -> list[Table]:
    """The table under every selection rule its runs have recorded; the one that all of them ask for comes first."""
    selections: list[Selection] = ["last", "oracle"]
    if all(job.config.data.validation_share for job in jobs):
        selections.insert(1, "noisy-val")
    asked = {job.config.selection for job in jobs}
    headline = asked.pop() if len(asked) == 1 else "last"
    return ordered([tabulate(protocol, scale, jobs, store, selection) for selection in selections], headline)


def collect(
    protocol: Protocol, jobs: Sequence[TableJob], store: str | Path, tables: Sequence[Table], *, command: str = ""
) -> ReportContent:
    """Everything a report says about the runs that are done; the others are named as what they are.

    Args:
        protocol: The table.
        jobs: Its runs.
        store: The folder of run folders.
        tables: The tables made of them, the headline first.
        command: What makes the report again.

    Raises:
        DataError: If a result or the metrics of a run are damaged.
    """
    store = Path(store).expanduser()
    done = [job for job in jobs if RunFolder(store / job.run_id).state == "done"]
    results = {job.run_id: RunFolder(store / job.run_id).result() for job in done}
    shared = common_part([job.config for job in jobs])
    return ReportContent(
        title=protocol.title,
        about=protocol.about,
        source=protocol.source,
        tables=tuple(tables),
        groups=_groups(protocol, tables[0], done, results, store),
        matrices=matrices(done, results, {column.name for column in protocol.columns if column.reference}),
        configuration=common_yaml(shared),
        runs=tuple(_run(job, store, results.get(job.run_id), own_settings(job.config, shared)) for job in jobs),
        environment=_merged(result["environment"] for result in results.values()),
        command=command,
        seconds=sum(result["seconds"] for result in results.values()),
        headline=tables[0].selection,
    )


def _groups(
    protocol: Protocol, table: Table, jobs: Sequence[TableJob], results: _Results, store: Path
) -> tuple[Group, ...]:
    metrics = {job.run_id: tuple(RunFolder(store / job.run_id).metrics()) for job in jobs}
    references = {column.name for column in protocol.columns if column.reference}
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
    """A cell over time, from all the runs that have seeds of it."""
    uses = [(job, use) for job in jobs for use in job.uses if (use.panel, use.row, use.column) == (panel, row, column)]
    if not uses:
        return None
    readings = [seed["readings"][use.reading] for job, use in uses for seed in results[job.run_id]["seeds"]]
    return Series(
        label=column,
        metrics=tuple(record for job, _ in uses for record in metrics[job.run_id]),
        reliability=tuple(reading["reliability"] for reading in readings),
        reading=uses[0][1].reading,
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
    """A report may be shown around; the name of an account need not be."""
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


def _merged(environments: Iterable[dict[str, str]]) -> dict[str, str]:
    """All values there were: runs of one table may come from several machines."""
    found: dict[str, list[str]] = {}
    for environment in environments:
        for name, value in environment.items():
            if value not in found.setdefault(name, []):
                found[name].append(value)
    return {name: " / ".join(values) for name, values in found.items()}
