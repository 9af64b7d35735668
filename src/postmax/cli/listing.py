"""What `postmax list` does: print the names that can be chosen, those of plugins included."""

from __future__ import annotations

import json
from collections.abc import Callable

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from postmax import data, divergences, estimation, losses, methods, models, plugins
from postmax.registry import unknown_name
from postmax.tables import catalogue as tables
from postmax.transition import kinds


def _tables() -> dict[str, str]:
    return {name: tables.summary(name) for name in tables.names()}


def _datasets() -> dict[str, str]:
    return {name: f"splits: {', '.join(data.splits(name))}" for name in data.names()}


def _noise() -> dict[str, str]:
    by_features = {"instance:ETA": "by the features of each row; for `postmax noise inject` only"}
    return dict.fromkeys(kinds(), "") | by_features


def _divergences() -> dict[str, str]:
    return {name: divergences.summary(name) for name in divergences.names()}


def _plugins() -> dict[str, str]:
    installed = plugins.installed()
    found = {
        plugin.name: f"{plugin.module} of {plugin.package}" + (f", not loaded: {plugin.error}" if plugin.error else "")
        for plugin in installed
    }
    named = (name for name in plugins.loaded() if name not in {plugin.module for plugin in installed})
    return found | dict.fromkeys(named, "named by --import or POSTMAX_IMPORT")


_KINDS: dict[str, Callable[[], dict[str, str]]] = {
    "tables": _tables,
    "losses": lambda: {name: losses.summary(name) for name in losses.names()},
    "methods": lambda: {name: methods.summary(name) for name in methods.names()},
    "models": lambda: {name: models.describe(name).summary for name in models.names()},
    "datasets": _datasets,
    "noise": _noise,
    "divergences": _divergences,
    "estimators": lambda: {name: estimation.summary(name) for name in estimation.names()},
    "plugins": _plugins,
}


def list_names(kind: str | None, *, as_json: bool) -> None:
    """Print what can be chosen: of one kind, or of all kinds."""
    if kind is not None and kind not in _KINDS:
        raise unknown_name("kind", kind, _KINDS)
    found = {name: _KINDS[name]() for name in ([kind] if kind else _KINDS)}
    if as_json:
        typer.echo(json.dumps(found[kind] if kind else found, ensure_ascii=False))
        return
    console = Console(highlight=False)
    for name, entries in found.items():
        if not entries:
            continue
        grid = Table(box=box.SIMPLE, show_header=False, title=Text(name, style="bold"), title_justify="left")
        grid.add_column(no_wrap=True)
        grid.add_column()
        for entry, about in entries.items():
            grid.add_row(Text(entry), Text(about))
        if name == "tables":
            grid.caption = Text("Your own: `postmax reproduce mine.yaml`, see docs/own-table.md.", style="dim")
            grid.caption_justify = "left"
        console.print(grid)
