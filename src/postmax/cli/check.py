"""What `postmax check` does."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from postmax.checking import check_file
from postmax.cli.live import show_stages
from postmax.cli.options import TableOptions
from postmax.cli.reading import as_reading
from postmax.cli.text import printable


def check(file: Path, options: TableOptions, *, strict: bool, as_json: bool) -> None:
    """Print the findings for a file or a folder of images."""
    with show_stages(quiet=as_json):
        findings = check_file(file, as_reading(options))
    typer.echo(json.dumps(findings.to_dict()) if as_json else printable(findings))
    if strict and findings.problems:
        raise typer.Exit(1)
