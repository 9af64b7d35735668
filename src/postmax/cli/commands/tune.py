"""`postmax tune`: its options and help text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from postmax.cli.options import JsonFlag, Workers
from postmax.cli.stopping import starting


def tune(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="A name of `postmax list tables`, or your own file such as mine.yaml.",
            show_default=False,
        ),
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
    with starting():
        from postmax.cli import tune as work

    work.tune(
        table,
        scale,
        None if rows is None else rows.split(","),
        out,
        workers=workers,
        retry_failed=retry_failed,
        dry_run=dry_run,
        as_json=as_json,
    )
