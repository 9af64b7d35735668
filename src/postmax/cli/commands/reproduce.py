"""`postmax reproduce` and `postmax report`: their options and help texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from postmax.cli.options import JsonFlag, OutFolder, Workers
from postmax.cli.stopping import starting

_Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A name of `postmax list tables`, or your own file such as mine.yaml (see docs/own-table.md).",
        show_default=False,
    ),
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
    """Run a table of the paper or of your own, and show the results beside the reported values.

    \b
    postmax reproduce breast-cancer
    postmax reproduce breast-cancer --scale quick
    postmax reproduce breast-cancer --rows KL,Hellinger --seeds 5
    postmax reproduce cifar10-correction --dry-run
    postmax reproduce cifar10-correction --scale paper accelerator=cuda precision=bf16-mixed

    Finished runs are never run again. After an interruption, the same command goes on where it stopped. Several
    commands may work in the same folder at the same time.
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import reproduce as work
        from postmax.tables.variant import Variant

    work.reproduce(
        table,
        Variant(seeds, rows, columns, tuple(settings or ()), tuned),
        scale,
        out,
        workers=workers,
        retry_failed=retry_failed,
        dry_run=dry_run,
        as_json=as_json,
    )


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
    with starting():
        from postmax.cli import reproduce as work
        from postmax.tables.variant import Variant

    work.report(table, Variant(seeds, rows, columns, tuple(settings or ()), tuned), scale, out, as_json=as_json)
