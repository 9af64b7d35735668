"""`postmax reproduce` runs a table; `postmax report` writes the page of a table or of a run again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from postmax.cli.options import JsonFlag, OutFolder, Workers
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
from postmax.sweep.plan import plan
from postmax.tables import TableSpec, load
from postmax.tables.cells import TableJob
from postmax.tables.variant import Variant
from postmax.train.timing import measure_epoch_seconds

_Table = Annotated[
    str, typer.Argument(metavar="TABLE", help="See `postmax list tables`, or your own YAML.", show_default=False)
]
_Settings = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Settings that change every run.", show_default=False),
]
_Scale = Annotated[str, typer.Option("--scale", "-s", help="cpu, quick or paper; tables may have others.")]
_Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        min=1,
        help="How many seeds. Each run trains a fixed number of seeds side by side, cut from seed 0 on, so that fewer "
        "seeds than that are another run.",
        show_default="by the scale",
    ),
]
_Names = typer.Option(help="Names, separated by commas; all also takes the optional ones.")
_Rows = Annotated[str | None, _Names]
_Tuned = Annotated[
    str | None,
    typer.Option(
        "--tuned",
        metavar="FILE",
        help="Settings of rows, as `postmax tune` writes them.",
        show_default="the table's own",
    ),
]


def reproduce(
    table: _Table,
    settings: _Settings = None,
    scale: _Scale = "cpu",
    seeds: _Seeds = None,
    rows: _Rows = None,
    columns: _Rows = None,
    tuned: _Tuned = None,
    workers: Workers = None,
    out: OutFolder = Path("postmax-results"),
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try diverged runs again.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would run and how long it would take.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run a table of the paper, and show the results beside the reported values, in the terminal and as a page.

    \b
    postmax reproduce breast-cancer
    postmax reproduce breast-cancer --scale quick
    postmax reproduce breast-cancer --rows KL,Hellinger --seeds 5
    postmax reproduce cifar10-correction --dry-run
    postmax reproduce cifar10-correction --scale paper accelerator=cuda precision=bf16-mixed

    Finished runs are never run again. After an interruption, the same command goes on where it stopped. Several
    commands may work in the same folder at the same time.
    """  # noqa: D301  (\b keeps the lines of the examples)
    spec, variant = load(table), Variant(seeds, rows, columns, tuple(settings or ()), tuned)
    todo = variant.jobs(spec, scale)
    store, workers = out / "runs", workers or default_workers(job.config.accelerator for job in todo)
    if dry_run:
        tell_plan(plan(todo, store, workers=workers, retry_failed=retry_failed, measure=measure_epoch_seconds), as_json)
        return
    report = run_all(todo, store, workers=workers, retry_failed=retry_failed)
    _show(spec, scale, variant, todo, out, as_json, _command(table, scale, variant))
    tell_failures(report, store)


def report(
    table: Annotated[
        str, typer.Argument(metavar="TABLE|FOLDER", help="A table, or the folder of a run.", show_default=False)
    ],
    settings: _Settings = None,
    scale: _Scale = "cpu",
    seeds: _Seeds = None,
    rows: _Rows = None,
    columns: _Rows = None,
    tuned: _Tuned = None,
    out: OutFolder = Path("postmax-results"),
    as_json: JsonFlag = False,
) -> None:
    """Write the page of a table or of a single run again, from finished runs. Nothing is trained.

    \b
    postmax report breast-cancer
    postmax report postmax-results/runs/0123456789abcdef
    """  # noqa: D301  (\b keeps the lines of the examples)
    if (Path(table) / "config.yaml").exists():
        run = RunFolder(table)
        typer.echo(str(write_run_page(run.config(), run)))
        return
    spec, variant = load(table), Variant(seeds, rows, columns, tuple(settings or ()), tuned)
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
