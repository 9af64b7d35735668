"""Run the jobs of a command: what it shows before, during and after them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from postmax.cli.progress import show_progress
from postmax.cli.stopping import Stopped
from postmax.duration import in_words
from postmax.runs.job import Job
from postmax.sweep.events import SweepReport
from postmax.sweep.plan import Plan, plan
from postmax.sweep.sweep import sweep


def run_all(todo: Sequence[Job], store: Path, *, workers: int, retry_failed: bool) -> SweepReport:
    """Run jobs and show how far they are. If somebody stops the command, a message says how to continue."""
    expected = plan(todo, store, workers=workers).expected
    try:
        with show_progress(todo, workers=workers, expected=expected, say=None) as watch:
            return sweep(todo, store, workers=min(workers, len(todo)), retry_failed=retry_failed, watch=watch)
    except Stopped as stop:
        typer.echo("postmax: stopped. The same command continues where it was.", err=True)
        raise typer.Exit(stop.exit_code) from None


def tell_failures(report: SweepReport, store: Path) -> None:
    """Print the runs that diverged."""
    for run_id, reason in report.failed.items():
        typer.echo(f"postmax: {store / run_id} failed: {reason}", err=True)


def tell_plan(found: Plan, as_json: bool) -> None:
    """Print what would run, and how long that would take."""
    groups = {"new": found.new, "resumed": found.resumed, "done": found.done, "failed": found.failed}
    if as_json:
        content: dict[str, Any] = {name: [job.run_id for job in part] for name, part in groups.items()}
        typer.echo(json.dumps({**content, "seconds": found.seconds, "workers": found.workers}))
        return
    verbs = {"new": "would begin", "resumed": "would resume", "done": "is done", "failed": "failed before"}
    for name, part in groups.items():
        for job in part:
            seconds = found.expected.get(job.run_id)
            took = f"  about {in_words(seconds)}" if seconds is not None else ""
            typer.echo(f"{verbs[name]:<14} {job.run_id}  {job.label}{took}")
    total = "not known" if found.seconds is None else in_words(found.seconds)
    typer.echo(f"{len(found.new) + len(found.resumed)} runs to do, {found.workers} at once: {total}.")
