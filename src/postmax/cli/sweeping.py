"""Run the jobs of a command: what it shows before, during and after them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer

from postmax.cli.live import show_stages
from postmax.cli.progress import show_progress
from postmax.cli.started import seconds_since_start
from postmax.cli.stopping import Stopped
from postmax.duration import in_words
from postmax.runs.job import Job
from postmax.sweep.events import SweepReport
from postmax.sweep.plan import Plan, plan
from postmax.sweep.sweep import sweep
from postmax.train import timing

# How long the page of a table takes, and the end of the process.
_PAGE_SECONDS = 4.0


def run_all(todo: Sequence[Job], store: Path, *, workers: int, retry_failed: bool, as_json: bool) -> SweepReport:
    """Run jobs and show how far they are. If somebody stops the command, a message says how to continue."""
    expected = plan(todo, store, workers=workers).expected
    say = None if as_json else partial(typer.echo, err=True)
    try:
        with show_progress(todo, workers=workers, expected=expected, say=say) as watch:
            return sweep(todo, store, workers=min(workers, len(todo)), retry_failed=retry_failed, watch=watch)
    except Stopped as stop:
        typer.echo("postmax: stopped. The same command continues where it was.", err=True)
        raise typer.Exit(stop.exit_code) from None


def tell_failures(report: SweepReport, store: Path) -> None:
    """Print the runs that diverged."""
    for run_id, reason in report.failed.items():
        typer.echo(f"postmax: {store / run_id} failed: {reason}", err=True)


def tell_plan(todo: Sequence[Job], store: Path, *, workers: int, retry_failed: bool, as_json: bool) -> None:
    """Print what would run, and how long that would take."""
    start_up = seconds_since_start()
    with show_stages(quiet=as_json):
        found = plan(
            todo,
            store,
            workers=min(workers, len(todo)),
            retry_failed=retry_failed,
            measure=timing,
            start_up=start_up,
        )
    groups = {"new": found.new, "resumed": found.resumed, "done": found.done, "failed": found.failed}
    if as_json:
        content: dict[str, Any] = {name: [job.run_id for job in part] for name, part in groups.items()}
        content |= {"seconds": _seconds(found), "workers": found.workers, "not_known": _reasons(found)}
        typer.echo(json.dumps(content))
        return
    verbs = {"new": "would begin", "resumed": "would resume", "done": "is done", "failed": "failed before"}
    for name, part in groups.items():
        for job in part:
            seconds = found.expected.get(job.run_id)
            took = f"  about {in_words(seconds)}" if seconds is not None else ""
            typer.echo(f"{verbs[name]:<14} {job.run_id}  {job.label}{took}")
    seconds = _seconds(found)
    total = f"time not known: {'; '.join(_reasons(found))}" if seconds is None else in_words(seconds)
    typer.echo(f"{len(found.new) + len(found.resumed)} runs to do, {found.workers} at once: {total}.")


def _seconds(found: Plan) -> float | None:
    """Return how long the command takes: the sweep, and the page at its end."""
    return found.seconds + _PAGE_SECONDS if found.seconds else found.seconds


def _reasons(found: Plan) -> list[str]:
    """Return why the time is not known, each reason once."""
    return list(dict.fromkeys(found.reasons.values()))
