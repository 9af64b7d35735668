"""What `postmax data` does: get data sets, list them, and say where they are."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from postmax import data
from postmax.cli.live import show_stages
from postmax.data.getting import instructions, state_of


def get(names: list[str], root: Path | None, *, as_json: bool) -> None:
    """Get data sets one after another, and say what is here afterwards."""
    for name in names:
        data.splits(name)  # a name that does not exist is an error before anything is downloaded
    found = []
    for name in names:
        with show_stages(quiet=as_json):
            got = data.get(name, root=root)
        found.append({"name": name, "new": [str(path) for path in got.new], "rows": got.rows})
        if not as_json:
            rows = ", ".join(f"{split} {count} rows" for split, count in got.rows.items())
            new = f" ({', '.join(path.name for path in got.new)})" if got.new else ""
            typer.echo(f"{name}: {'is here now' if got.new else 'was here'}{new}, and is verified: {rows}.")
    if as_json:
        typer.echo(json.dumps(found))


def list_all(root: Path | None, *, as_json: bool) -> None:
    """Print which data sets are here, and how to get the others."""
    folder = data.data_root(root)
    states = {name: state_of(name, folder) for name in data.names()}
    if as_json:
        typer.echo(json.dumps({"root": str(folder), "datasets": states}))
        return
    width = max(map(len, states))
    for name, state in states.items():
        typer.echo(f"{name:<{width}}  {state}")
    typer.echo(f"folder: {folder}")


def where(name: str | None, root: Path | None) -> None:
    """Print the folder of all data sets, or for one data set where each file is or goes."""
    folder = data.data_root(root)
    if name is None:
        typer.echo(str(folder))
        return
    for needed in data.needed_files(name):
        place = needed.found(folder)
        typer.echo(str(place) if place is not None else f"missing:\n{instructions([needed], folder)}")
    if not data.needed_files(name):
        typer.echo(f"{name} needs no files.")
