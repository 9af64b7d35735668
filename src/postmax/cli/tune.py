"""`postmax tune`: choose the settings of a table's rows before the table is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from postmax.cli.options import JsonFlag, Workers
from postmax.cli.sweeping import run_all, tell_failures, tell_plan
from postmax.report.table.tuned_text import HEADING
from postmax.sweep.cores import default_workers
from postmax.sweep.plan import plan
from postmax.tables import load
from postmax.tables.tuned import Tuned, TunedRow
from postmax.train.settings import as_overrides
from postmax.train.timing import measure_epoch_seconds
from postmax.tuning.choose import choose, nothing_chosen, trial_jobs, trials
from postmax.tuning.tuned_file import add_to_file, rows_to_keep


def tune(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="See `postmax list tables`, or your own YAML.", show_default=False)
    ],
    scale: Annotated[str, typer.Option("--scale", "-s", help="A scale with a tuning section.")] = "cpu",
    rows: Annotated[
        str | None,
        typer.Option(
            help="Names of rows, separated by commas; all also takes the optional ones. Other rows stay in the file."
        ),
    ] = None,
    workers: Workers = None,
    out: Annotated[
        Path, typer.Option("--out", "--output", "-o", help="The folder for runs and for the chosen settings.")
    ] = Path("postmax-results"),
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try diverged runs again.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would run and how long it would take.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Choose the settings of a table's rows by noisy validation labels. Test labels are never used.

    \b
    postmax tune TABLE --dry-run
    postmax tune TABLE --rows CE,GCE
    postmax reproduce TABLE --tuned postmax-results/TABLE-cpu-tuned.yaml

    Every combination of a row's grid is trained with the tuning seeds of the scale. Finished runs are never run again.
    After an interruption, the same command goes on where it stopped.
    """  # noqa: D301  (\b keeps the lines of the examples)
    spec = load(table)
    tried = trials(spec, scale, None if rows is None else rows.split(","))
    todo, store, file = trial_jobs(tried), out / "runs", out / f"{spec.name}-{scale}-tuned.yaml"
    workers = workers or default_workers(job.config.accelerator for job in todo)
    # Checked before the runs, which may take hours: the rows in the file must fit those that are tuned now.
    planned = {trial.row: TunedRow(chosen=trial.settings, scores=()) for trial in tried}
    rows_to_keep(file, nothing_chosen(spec, scale).model_copy(update={"rows": planned}), spec)
    if dry_run:
        found = plan(todo, store, workers=workers, retry_failed=retry_failed, measure=measure_epoch_seconds)
        tell_plan(found, as_json)
        return
    report = run_all(todo, store, workers=workers, retry_failed=retry_failed)
    tuned = choose(spec, scale, tried, store)
    add_to_file(tuned, file, spec)
    if as_json:
        typer.echo(json.dumps({"file": str(file), **tuned.model_dump(mode="json")}, ensure_ascii=False))
    else:
        _print(tuned)
        typer.echo(f"settings: {file}")
    tell_failures(report, store)
    for name, row in tuned.rows.items():
        if not any(score.score for score in row.scores):
            typer.echo(f"postmax: every setting of row {name} diverged; the first one was chosen.", err=True)


def _print(tuned: Tuned) -> None:
    # A file has no width, so it gets long lines.
    console = Console(width=None if Console().is_terminal else 200, highlight=False)
    console.print(Text(HEADING, style="bold"), Text(f"({tuned.table}, scale: {tuned.scale})", style="dim"))
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("")
    grid.add_column("settings")
    for heading in ("score", "tried", "diverged"):
        grid.add_column(heading, justify="right")
    for name, row in tuned.rows.items():
        best = max(score.score for score in row.scores)
        diverged = sum(None in score.accuracy.values() for score in row.scores)
        grid.add_row(Text(name), Text(as_overrides(row.chosen)), f"{best:.3f}", str(len(row.scores)), str(diverged))
    console.print(grid)
    console.print(
        Text(
            "score: noisy-validation accuracy divided by the best of the row, mean over the tuning columns", style="dim"
        )
    )
