"""What `postmax tune` does: choose the settings of a table's rows before the table is run."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from postmax.cli.sweeping import run_all, tell_failures, tell_plan
from postmax.report.table.tuned_text import HEADING
from postmax.sweep.cores import default_workers
from postmax.tables import load
from postmax.tables.tuned import Tuned, TunedRow
from postmax.train.settings import as_overrides
from postmax.tuning.choose import choose, nothing_chosen, trial_jobs, trials
from postmax.tuning.tuned_file import add_to_file, rows_to_keep


def tune(
    table: str,
    scale: str,
    rows: list[str] | None,
    out: Path,
    *,
    workers: int | None,
    retry_failed: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Choose the settings of a table's rows; or only say what would run.

    Args:
        table: The name of a table, or a YAML file.
        scale: A scale with a tuning section.
        rows: The names of the rows to tune; None for those that are not optional.
        out: The folder for runs and for the chosen settings.
        workers: How many runs at once; by default as many as the machine has cores.
        retry_failed: Try diverged runs again.
        dry_run: Only say what would run and how long it would take.
        as_json: Print JSON.
    """
    spec = load(table)
    tried = trials(spec, scale, rows)
    todo, store, file = trial_jobs(tried), out / "runs", out / f"{spec.name}-{scale}-tuned.yaml"
    workers = workers or default_workers(job.config.accelerator for job in todo)
    # Checked before the runs, which may take hours: the rows in the file must fit those that are tuned now.
    planned = {trial.row: TunedRow(chosen=trial.settings, scores=()) for trial in tried}
    rows_to_keep(file, nothing_chosen(spec, scale).model_copy(update={"rows": planned}), spec)
    if dry_run:
        tell_plan(todo, store, workers=workers, retry_failed=retry_failed, as_json=as_json)
        return
    report = run_all(todo, store, workers=workers, retry_failed=retry_failed, as_json=as_json)
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
    if tuned.set:
        console.print(Text(f"tried with {as_overrides(tuned.set)}, for the trials alone", style="dim"))
    console.print(
        Text(
            "score: noisy-validation accuracy divided by the best of the row, mean over the tuning columns", style="dim"
        )
    )
