"""What `postmax reproduce` and `postmax report` do: run a table, and write the page of a table or of a run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from postmax.cli.sweeping import run_all, tell_failures, tell_plan
from postmax.errors import InputError
from postmax.files import atomic_write
from postmax.report.run_page import write_run_page
from postmax.report.table.collect import collect, tabulate_all
from postmax.report.table.page import write_table_page
from postmax.report.table.terminal import print_table
from postmax.report.table.text import to_json, to_markdown
from postmax.report.table.tuned_text import tuned_to_markdown
from postmax.runs import RunFolder
from postmax.sweep.cores import default_workers
from postmax.tables import TableSpec, load
from postmax.tables.cells import TableJob
from postmax.tables.variant import Variant


def reproduce(
    table: str,
    variant: Variant,
    scale: str,
    out: Path,
    *,
    workers: int | None,
    retry_failed: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Run a table and show it; or only say what would run.

    Args:
        table: The name of a table, or a YAML file.
        variant: Which part of the table, with which settings.
        scale: The scale.
        out: The folder for runs and reports.
        workers: How many runs at once; by default as many as the machine has cores.
        retry_failed: Try diverged runs again.
        dry_run: Only say what would run and how long it would take.
        as_json: Print JSON.
    """
    spec = load(table)
    todo = variant.jobs(spec, scale)
    store, workers = out / "runs", workers or default_workers(job.config.accelerator for job in todo)
    if dry_run:
        tell_plan(todo, store, workers=workers, retry_failed=retry_failed, as_json=as_json)
        return
    report = run_all(todo, store, workers=workers, retry_failed=retry_failed, as_json=as_json)
    _show(spec, scale, variant, todo, out, as_json, _command(table, scale, variant))
    tell_failures(report, store)


def report(table: str, variant: Variant, scale: str, out: Path, *, as_json: bool) -> None:
    """Write the page of a table or of a single run again, from finished runs."""
    if (Path(table) / "config.yaml").exists():
        run = RunFolder(table)
        page = str(write_run_page(run.config(), run))
        typer.echo(json.dumps({"report": page}) if as_json else page)
        return
    spec = load(table)
    todo, command = variant.jobs(spec, scale), _command(table, scale, variant)
    if not any(RunFolder(out / "runs" / job.run_id).state == "done" for job in todo):
        raise InputError(f"{out / 'runs'} has no finished run of this table at scale {scale}: first run `{command}`.")
    _show(spec, scale, variant, todo, out, as_json, command)


def _show(
    spec: TableSpec, scale: str, variant: Variant, todo: Sequence[TableJob], out: Path, as_json: bool, command: str
) -> None:
    """Write the table as a page, as JSON and as Markdown, and print it."""
    store, folder = out / "runs", out / variant.folder(f"{spec.name}-{scale}")
    tables = [
        replace(table, note=" ".join(filter(None, (table.note, variant.note))))
        for table in tabulate_all(spec, scale, todo, store)
    ]
    page = write_table_page(collect(spec, todo, store, tables, command=command), folder)
    plain: dict[str, Any] = {"command": command, "report": str(page), "tables": [to_json(table) for table in tables]}
    for name, text in (
        ("table.json", json.dumps(plain, indent=1, ensure_ascii=False)),
        ("table.md", "\n".join(filter(None, (*map(to_markdown, tables), tuned_to_markdown(tables[0].tuned))))),
    ):
        with atomic_write(folder / name) as file:
            file.write(f"{text}\n".encode())
    if as_json:
        typer.echo(json.dumps(plain, ensure_ascii=False))
        return
    print_table(tables[0])
    typer.echo(f"report: {page}")


def _command(table: str, scale: str, variant: Variant) -> str:
    """Return the command that makes the table again."""
    options = (word for name, value in variant.options.items() for word in (f"--{name}", value))
    return shlex.join(["postmax", "reproduce", table, "--scale", scale, *options, *variant.settings])
