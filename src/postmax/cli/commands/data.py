"""`postmax data`: its commands, their options and help texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from postmax.cli.options import JsonFlag
from postmax.cli.stopping import starting

app = typer.Typer(help="Get data sets, and see which are here and where.", no_args_is_help=True, rich_markup_mode=None)

_Root = Annotated[
    Path | None,
    typer.Option("--root", help="The folder of all data sets.", show_default="$POSTMAX_DATA or ~/.cache/postmax"),
]


@app.command()
def get(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="See `postmax data list`.", show_default=False)],
    root: _Root = None,
    as_json: JsonFlag = False,
) -> None:
    """Get data sets, and verify them: download what may be downloaded, compute features, say where the rest goes.

    \b
    postmax data get cifar10
    postmax data get mnist fashion-mnist --root /data
    postmax data get cifar10-embedded

    A download continues after an interruption, and is verified by its checksum. A data set that is here is verified.
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import data as work

    work.get(names, root, as_json=as_json)


@app.command("list")
def list_(root: _Root = None, as_json: JsonFlag = False) -> None:
    """List all data sets: which are here, and how to get the others.

    \b
    postmax data list
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import data as work

    work.list_all(root, as_json=as_json)


@app.command()
def where(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A data set; without it, all.", show_default=False)
    ] = None,
    root: _Root = None,
) -> None:
    """Print the folder of all data sets, or the places of the files of one: where they are, or where they go.

    \b
    postmax data where
    postmax data where webvision
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import data as work

    work.where(name, root)
