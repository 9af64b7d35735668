"""What `postmax train` and `postmax resume` do: one run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from postmax import data, losses, methods, plugins
from postmax.cli.live import show_run, show_stages
from postmax.cli.options import TableOptions
from postmax.cli.reading import put_into, tell_notes
from postmax.cli.result import tell_result
from postmax.cli.source import source_of
from postmax.cli.started import seconds_since_start
from postmax.cli.stopping import Stopped
from postmax.duration import in_words
from postmax.errors import DataError, DivergedError, InputError, UnknownNameError
from postmax.report.run_page import write_run_page
from postmax.runs import RunFolder, execute
from postmax.train import RunConfig, make_config, resolve
from postmax.train.build import check_names
from postmax.train.config import DataConfig
from postmax.train.defaults import with_defaults
from postmax.train.prepare import load_rows
from postmax.train.settings import read_yaml, with_overrides
from postmax.train.timing import NotHere, measure_estimates, measure_run

# How long the page of a run takes, and the end of the process.
_PAGE_SECONDS = 1.5
_WHICH_DATA = "which data? Give a data set or a file, such as: postmax train digits"


def train(
    arguments: list[str], options: TableOptions, config: Path | None, out: Path, *, dry_run: bool, as_json: bool
) -> None:
    """Train on a data set or a file, and write the result and a page; or only say what would run.

    Args:
        arguments: At most one data set or file, and settings of the form `key=value`.
        options: How the file is read.
        config: A YAML file to start from.
        out: The folder for runs.
        dry_run: Only say what would run and how long it would take.
        as_json: Print JSON.
    """
    with _missing_plugins_named(None if config is None else RunFolder(config.parent)):
        run = resolve(_configure(arguments, options, config, dry_run=dry_run))
        check_names(run.loss)
        _refuse_idle_transition(run)
        folder = RunFolder(out / "runs" / run.run_id)
        if run.data.path is not None and folder.state != "done":
            tell_notes(load_rows(run.data)[0].notes)
        if dry_run:
            _tell_plan(run, folder, as_json)
        else:
            _run(run, folder, as_json)


def resume(folder: Path, *, previous: bool, restart: bool, as_json: bool) -> None:
    """Continue a run that was stopped."""
    run = RunFolder(folder)
    with _missing_plugins_named(run):
        _run(run.config(), run, as_json, previous=previous, restart=restart)


@contextmanager
def _missing_plugins_named(folder: RunFolder | None) -> Iterator[None]:
    """If a name is unknown, say which plugins the run had that are not loaded now. They are never imported unasked."""
    try:
        yield
    except UnknownNameError as error:
        known = {_module(plugin) for plugin in plugins.described()}
        missing = [plugin for plugin in (folder.plugins() if folder else ()) if _module(plugin) not in known]
        if not missing:
            raise
        advice = " ".join(f"--import {shlex.quote(_module(plugin))}" for plugin in missing)
        raise UnknownNameError(
            f"{error} The run was made with plugins that are not loaded now: {', '.join(missing)}. Add {advice}, with "
            "the path of a file where it lies now."
        ) from error


def _module(plugin: str) -> str:
    """Return the module of a plugin that is named with its package."""
    return plugin.partition(" (")[0]


def _configure(arguments: list[str], options: TableOptions, file: Path | None, *, dry_run: bool) -> RunConfig:
    content: dict[str, Any] = {} if file is None else read_yaml(file)
    sources = [argument for argument in arguments if "=" not in argument or Path(argument).exists()]
    if len(sources) > 1:
        raise InputError(f"one data set at a time: {sources[0]!r} or {sources[1]!r}? Settings are key=value.")
    before = _data_section(content)
    settings = [argument for argument in arguments if argument not in sources]
    if sources:
        content["data"] = {**before, **_source(sources[0])}
    content = with_overrides(content, settings)
    section = _data_section(content)
    if not section:
        raise InputError(_WHICH_DATA)
    if section.get("path") != before.get("path") and section.get("sha256") == before.get("sha256"):
        section.pop("sha256", None)  # it is that of the file in the configuration, and this is another file
    content["data"] = section
    put_into(content, options, settings)
    if file is not None:
        return make_config(content)
    if dry_run:
        _refuse_absent(make_config(content).data)
    return make_config(with_defaults(content))


def _data_section(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the data. A name or a path alone, as in `data=digits`, is a section too."""
    section = content.get("data") or {}
    if isinstance(section, str):
        return dict(_source(section))
    if not isinstance(section, Mapping):
        raise InputError(f"data must be a name, or a section with keys such as name, path and labels, not {section!r}.")
    return dict(section)


def _refuse_absent(source: DataConfig) -> None:
    """Refuse to plan with data that are not here, because the default settings depend on them."""
    if source.name is not None and data.absent(source.name, source.root):
        raise DataError(
            f"{source.name} is not here (postmax data get {source.name}). The default settings depend on the data, so "
            "the run can be planned when they are here, or with all settings in a file: --config FILE."
        )


def _refuse_idle_transition(run: RunConfig) -> None:
    """Refuse a transition that the loss does not use. In a table some rows may use it; here it is a mistake."""
    facts = methods.describe(run.method.name).facts
    used = losses.needs_transition(run.loss.name, run.loss.options) or (facts is not None and facts.uses_transition)
    if run.transition != "known" and not used:
        raise InputError(
            f"transition={run.transition} is given, but loss={run.loss.name} does not use it. Say how, for example "
            "loss.correction=forward with loss=fpml, or leave it out."
        )


def _source(text: str) -> dict[str, str]:
    """Return the data of a run from a word: the name of a data set, or a path."""
    if not text.strip():
        raise InputError(_WHICH_DATA)
    source = source_of(text)
    return {"name": source} if isinstance(source, str) else {"path": str(source.resolve())}


def _tell_plan(run: RunConfig, folder: RunFolder, as_json: bool) -> None:
    start_up, seconds, reason = seconds_since_start(), None, ""
    try:
        with show_stages(quiet=as_json):
            seconds = 0.0 if folder.state == "done" else start_up + _seconds_of(run) + _PAGE_SECONDS
    except NotHere as error:
        reason = str(error)
    if as_json:
        plan = {"folder": str(folder.path), "state": folder.state, "seconds": seconds}
        typer.echo(json.dumps(plan | ({"not_known": reason} if reason else {})))
        return
    typer.echo(run.to_yaml())
    state = {"done": "is done", "started": "would continue", "failed": "failed before", "new": "would begin"}[
        folder.state
    ]
    takes = f"takes about {in_words(seconds)}" if seconds is not None else f"its time is not known: {reason}"
    typer.echo(f"The run {state} in {folder.path}, and {takes}.")


def _seconds_of(run: RunConfig) -> float:
    cost = measure_run(run)
    return cost.once + cost.start + measure_estimates(run) + cost.epoch * run.epochs


def _run(config: RunConfig, folder: RunFolder, as_json: bool, *, previous: bool = False, restart: bool = False) -> None:
    quoted = shlex.quote(str(folder.path))
    if folder.state == "failed" and not restart:
        raise DivergedError(
            f"{folder.failure()} The run failed like this before; `postmax resume {quoted} --restart` tries it again."
        )
    try:
        with show_run(config.data.name or Path(config.data.path or "").name, quiet=as_json) as show:
            execute(config, folder.path, progress=show, previous=previous, restart=restart)
    except Stopped as stop:
        begun = (folder.path / "config.yaml").exists()
        how = f". Continue with: postmax resume {quoted}" if begun else " before training began."
        typer.echo(f"postmax: stopped{how}", err=True)
        raise typer.Exit(stop.exit_code) from None
    page = write_run_page(config, folder)
    if as_json:
        typer.echo(json.dumps({**folder.result(), "folder": str(folder.path), "report": str(page)}))
    else:
        tell_result(config, folder, page)
