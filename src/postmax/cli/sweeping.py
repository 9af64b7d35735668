"""Run the jobs of a command: what it shows before, during and after them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
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
        for jobs in _by_cell(part):
            typer.echo(f"{verbs[name]:<14} {_planned(jobs, found)}")
    seconds = _seconds(found)
    typer.echo(f"{len(found.new) + len(found.resumed)} runs to do, {found.workers} at once: {_total(seconds, found)}")


def _by_cell(jobs: Sequence[Job]) -> list[list[Job]]:
    """Return the jobs in groups that differ only in their seeds. At full scale a cell has a run for each seed."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        content = job.config.model_dump(mode="json") | {"seeds": len(job.config.seeds)}
        found.setdefault(json.dumps(content, sort_keys=True), []).append(job)
    return list(found.values())


def _planned(jobs: Sequence[Job], found: Plan) -> str:
    """Return one line about runs that differ only in their seeds."""
    known = [found.expected[job.run_id] for job in jobs if job.run_id in found.expected]
    took = f"  about {in_words(fmean(known))}" if known else ""
    if len(jobs) == 1:
        return f"{jobs[0].run_id}  {jobs[0].label}{took}"
    seeds = sorted(seed for job in jobs for seed in job.config.seeds)
    each = " each" if known else ""
    # Each label ends in the seeds of its run.
    label = " · ".join([*jobs[0].label.split(" · ")[:-1], f"seeds {seeds[0]}–{seeds[-1]}"])
    return f"{len(jobs):>3} runs  {label}{took}{each}"


def _total(seconds: float | None, found: Plan) -> str:
    """Return how long all runs take, or why that is not known; several reasons have a line each."""
    if seconds is not None:
        return f"{in_words(seconds)}."
    reasons = _reasons(found)
    if len(reasons) == 1:
        return f"time not known: {reasons[0]}."
    return "\n  ".join(["time not known:", *reasons])


def _seconds(found: Plan) -> float | None:
    """Return how long the command takes: the sweep, and the page at its end."""
    return found.seconds + _PAGE_SECONDS if found.seconds else found.seconds


def _reasons(found: Plan) -> list[str]:
    """Return why the time is not known, each reason once."""
    return list(dict.fromkeys(found.reasons.values()))
