"""`postmax reproduce` and `postmax report`: tables, and the pages that show them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from postmax.bench import protocol as protocols
from postmax.bench.cores import default_workers
from postmax.bench.cost import Plan, plan
from postmax.bench.forecast import in_words
from postmax.bench.jobs import Job
from postmax.bench.progress import show_progress
from postmax.bench.protocol import Protocol
from postmax.bench.report import write_report
from postmax.bench.report.collect import collect, tabulate_all
from postmax.bench.single import write_run_report
from postmax.bench.sweep import sweep
from postmax.bench.terminal import print_table
from postmax.bench.text import to_json, to_markdown
from postmax.bench.variant import Variant
from postmax.cli.options import JsonFlag, OutFolder
from postmax.errors import InputError
from postmax.files import atomic_write
from postmax.train import RunFolder
from postmax.train.cost import measure_epoch_seconds

_Table = Annotated[
    str, typer.Argument(metavar="TABLE", help="See `postmax list tables`, or your own YAML.", show_default=False)
]
_Settings = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings of every run.", show_default=False)
]
_Scale = Annotated[str, typer.Option("--scale", "-s", help="cpu, quick or paper; tables may have others.")]
_Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        min=1,
        help="How many. Each run trains a fixed number of them side by side, cut from seed 0 on, so that fewer seeds "
        "than that are another run.",
        show_default="by the scale",
    ),
]
_Names = typer.Option(help="Only these, separated by commas; all also brings the optional ones.")
_Rows = Annotated[str | None, _Names]


def reproduce(
    table: _Table,
    settings: _Settings = None,
    scale: _Scale = "cpu",
    seeds: _Seeds = None,
    rows: _Rows = None,
    columns: _Rows = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", min=1, show_default="one for each core, or one in all on a GPU")
    ] = None,
    out: OutFolder = Path("postmax-results"),
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run again what diverged before.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run and how long it will take.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run a table of the paper: ours beside the paper's, in the terminal and as a page.

    \b
    postmax reproduce breast-cancer
    postmax reproduce breast-cancer --scale quick
    postmax reproduce breast-cancer --rows KL,Hellinger --seeds 5
    postmax reproduce cifar10-correction --dry-run
    postmax reproduce cifar10-correction --scale paper accelerator=cuda precision=bf16-mixed

    What is done is never run again, what was killed goes on: give the same command again. Several may run at once in
    one folder.
    """  # noqa: D301  (\b keeps the lines of the examples)
    chosen, variant = protocols.load(table), Variant(seeds, rows, columns, tuple(settings or ()))
    todo = variant.jobs(chosen, scale)
    store, workers = out / "runs", workers or default_workers(job.config.accelerator for job in todo)
    if dry_run:
        _tell_plan(
            plan(todo, store, workers=workers, retry_failed=retry_failed, measure=measure_epoch_seconds), as_json
        )
        return
    expected = plan(todo, store, workers=workers).expected
    try:
        with show_progress(todo, workers=workers, expected=expected, say=None) as watch:
            report = sweep(todo, store, workers=min(workers, len(todo)), retry_failed=retry_failed, watch=watch)
    except KeyboardInterrupt:
        typer.echo("postmax: stopped. The same command goes on where it was.", err=True)
        raise typer.Exit(130) from None
    _show(chosen, scale, variant, todo, out, as_json, _command(table, scale, variant))
    for run_id, reason in report.failed.items():
        typer.echo(f"postmax: {store / run_id} failed: {reason}", err=True)


def report(
    table: Annotated[
        str, typer.Argument(metavar="TABLE|FOLDER", help="A table, or the folder of a run.", show_default=False)
    ],
    settings: _Settings = None,
    scale: _Scale = "cpu",
    seeds: _Seeds = None,
    rows: _Rows = None,
    columns: _Rows = None,
    out: OutFolder = Path("postmax-results"),
    as_json: JsonFlag = False,
) -> None:
    """Write the page of a table again from the runs that are there, or that of a single run; nothing is trained.

    \b
    postmax report breast-cancer
    postmax report postmax-results/runs/0123456789abcdef
    """  # noqa: D301  (\b keeps the lines of the examples)
    if (Path(table) / "config.yaml").exists():
        run = RunFolder(table)
        typer.echo(str(write_run_report(run.config(), run)))
        return
    chosen, variant = protocols.load(table), Variant(seeds, rows, columns, tuple(settings or ()))
    todo, command = variant.jobs(chosen, scale), _command(table, scale, variant)
    if not any(RunFolder(out / "runs" / job.run_id).state == "done" for job in todo):
        raise InputError(f"{out / 'runs'} has no finished run of this table at scale {scale}: first run `{command}`.")
    _show(chosen, scale, variant, todo, out, as_json, command)


def _show(
    chosen: Protocol, scale: str, variant: Variant, todo: Sequence[Job], out: Path, as_json: bool, command: str
) -> None:
    """The table in the terminal, as files, and as a page."""
    store, folder = out / "runs", out / variant.folder(f"{chosen.name}-{scale}")
    tables = [
        replace(table, note=" ".join(filter(None, (table.note, variant.note))))
        for table in tabulate_all(chosen, scale, todo, store)
    ]
    page = write_report(collect(chosen, todo, store, tables, command=command), folder)
    plain: dict[str, Any] = {"command": command, "report": str(page), "tables": [to_json(table) for table in tables]}
    for name, text in (
        ("table.json", json.dumps(plain, indent=1, ensure_ascii=False)),
        ("table.md", "\n".join(to_markdown(table) for table in tables)),
    ):
        with atomic_write(folder / name) as file:
            file.write(f"{text}\n".encode())
    if as_json:
        typer.echo(json.dumps(plain, ensure_ascii=False))
        return
    print_table(tables[0])
    typer.echo(f"report: {page}")


def _command(table: str, scale: str, variant: Variant) -> str:
    """What makes the table again."""
    options = (word for name, value in variant.options.items() for word in (f"--{name}", value))
    return shlex.join(["postmax", "reproduce", table, "--scale", scale, *options, *variant.settings])


def _tell_plan(found: Plan, as_json: bool) -> None:
    groups = {"new": found.new, "resumed": found.resumed, "done": found.done, "failed": found.failed}
    if as_json:
        content: dict[str, Any] = {name: [job.run_id for job in part] for name, part in groups.items()}
        typer.echo(json.dumps({**content, "seconds": found.seconds, "workers": found.workers}))
        return
    verbs = {"new": "would begin", "resumed": "would go on", "done": "is done", "failed": "failed before"}
    for name, part in groups.items():
        for job in part:
            seconds = found.expected.get(job.run_id)
            took = f"  about {in_words(seconds)}" if seconds is not None else ""
            typer.echo(f"{verbs[name]:<14} {job.run_id}  {job.label}{took}")
    total = "not known" if found.seconds is None else in_words(found.seconds)
    typer.echo(f"{len(found.new) + len(found.resumed)} runs to do, {found.workers} at once: {total}.")
