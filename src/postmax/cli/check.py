"""What `postmax check` does."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from postmax.checking import Findings, check_file
from postmax.cli.live import show_stages
from postmax.cli.options import TableOptions
from postmax.cli.reading import as_reading


def check(file: Path, options: TableOptions, *, strict: bool, as_json: bool) -> None:
    """Print the findings for a file or a folder of images."""
    with show_stages(quiet=as_json):
        findings = check_file(file, as_reading(options))
    typer.echo(json.dumps(findings.to_dict()) if as_json else on_a_terminal(findings))
    if strict and findings.problems:
        raise typer.Exit(1)


def on_a_terminal(findings: Findings | str) -> str:
    """Return findings, or words about data, as text without control characters, which a file may hold."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "�" for letter in str(findings))
