"""`postmax list`: what can be chosen."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from postmax import data, divergences, losses, methods, models
from postmax.cli.options import JsonFlag
from postmax.registry import unknown_name
from postmax.tables import spec as protocol


def _tables() -> dict[str, str]:
    return {name: protocol.load(name).title for name in protocol.names()}


def _datasets() -> dict[str, str]:
    return {name: f"splits: {', '.join(data.splits(name))}" for name in data.names()}


def _divergences() -> dict[str, str]:
    return {name: divergences.summary(name) for name in divergences.names()}


_KINDS: dict[str, Callable[[], dict[str, str]]] = {
    "tables": _tables,
    "losses": lambda: {name: losses.summary(name) for name in losses.names()},
    "methods": lambda: {name: methods.summary(name) for name in methods.names()},
    "models": lambda: {name: models.describe(name).summary for name in models.names()},
    "datasets": _datasets,
    "divergences": _divergences,
}


def list_(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help=", ".join(_KINDS), show_default=False)] = None,
    as_json: JsonFlag = False,
) -> None:
    """Say what can be chosen.

    \b
    postmax list
    postmax list tables
    postmax list divergences --json
    """  # noqa: D301  (\b keeps the lines of the examples)
    if kind is not None and kind not in _KINDS:
        raise unknown_name("kind", kind, _KINDS)
    found = {name: _KINDS[name]() for name in ([kind] if kind else _KINDS)}
    if as_json:
        typer.echo(json.dumps(found[kind] if kind else found, ensure_ascii=False))
        return
    console = Console(highlight=False)
    for name, entries in found.items():
        grid = Table(box=box.SIMPLE, show_header=False, title=Text(name, style="bold"), title_justify="left")
        grid.add_column(no_wrap=True)
        grid.add_column()
        for entry, about in entries.items():
            grid.add_row(Text(entry), Text(about))
        console.print(grid)
