"""What `postmax export` does."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from postmax.cli.live import show_stages
from postmax.cli.outputs import spare
from postmax.loading import load
from postmax.runs.export import files_of


def export(model: Path, out: Path, *, seed: int | None, force: bool, as_json: bool) -> None:
    """Write a trained model for programs without postmax."""
    files = files_of(out)
    spare(files, model, force)
    predictor = load(model, seed=seed, device="cpu", precision="32-true")
    with show_stages(quiet=as_json):
        written = predictor.export(out)
    if as_json:
        typer.echo(json.dumps(written.to_dict()))
        return
    for line in written.lines():
        typer.echo(line)
