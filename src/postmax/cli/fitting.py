"""What `postmax fit` and `postmax audit` share: a file, one training, and a folder with the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import typer

from postmax.cli.live import show_stages
from postmax.cli.options import TableOptions
from postmax.cli.reading import as_reading
from postmax.cli.stopping import Stopped
from postmax.cli.text import printable
from postmax.data.embedding.image_embedding import USUAL
from postmax.data.own import fingerprint, is_table
from postmax.data.reading import ReadingOptions
from postmax.errors import InputError
from postmax.files import existing_file
from postmax.fitting import Fit, FitFolder, FitRows, fit, read_rows
from postmax.report.fit.words import left_out_in_words
from postmax.version import __version__

ALREADY = "already done; --force does it again"


class Request(NamedTuple):
    """What a person asked for.

    Attributes:
        source: The file or folder.
        reading: How it is read.
        keeps_missing: Whether nothing was said about missing numbers.
        network: The frozen network for images; None for the usual one.
        seed: The seed.
    """

    source: Path
    reading: ReadingOptions
    keeps_missing: bool
    network: str | None
    seed: int

    @classmethod
    def of(cls, file: Path, options: TableOptions, network: str | None, seed: int) -> Request:
        """Return what was asked for, if it can be done.

        Raises:
            DataError: If there is no such file.
            InputError: If an option has no meaning for it.
        """
        source = file.expanduser()
        source = source.resolve() if source.is_dir() else existing_file(source)
        if network is not None and is_table(source):
            raise InputError(f"{file}: --embedding is for images, but this is a table.")
        return cls(source, as_reading(options), options.missing is None, network, seed)

    @property
    def name(self) -> str:
        """The usual name of the folder with the result."""
        return self.source.name if self.source.is_dir() else self.source.stem

    def identity(self) -> dict[str, Any]:
        """Return what the result depends on, as plain values."""
        reading = {**vars(self.reading), "drop": list(self.reading.drop), "keeps_missing": self.keeps_missing}
        return {
            "version": __version__,
            "sha256": fingerprint(self.source),
            "name": self.source.name,
            "reading": reading,
            "embedding": self.network,
            "seed": self.seed,
        }


def complete(
    folder: FitFolder, request: Request, write: Callable[[Fit], Any], *, what: str, force: bool, quiet: bool
) -> bool:
    """Train and fill a folder, unless it holds the result already. Return whether it did.

    Args:
        folder: The folder.
        request: What was asked for.
        write: Writes all but the result into the folder, and returns the result.
        what: What the folder holds, such as "model".
        force: Whether another result may be replaced.
        quiet: Say nothing but what a person should know about the data.

    Raises:
        InputError: If the folder holds something else.
        DataError: If it cannot be written.
    """
    identity, before = request.identity(), folder.made_from()
    if before == identity and not force:
        return True
    if before is not None and not force:
        raise InputError(f"{folder.path} holds another {what}; give another --out, or --force to replace it.")
    folder.refuse_other_files()
    folder.refuse_no_place()
    try:
        with show_stages(quiet=quiet):
            rows = read_rows(request.source, request.reading, keeps_missing=request.keeps_missing)
            _tell_before(rows)
            found = fit(rows, network=request.network or USUAL, seed=request.seed)
            folder.begin()
            folder.finish(write(found), identity)
    except Stopped as stop:
        typer.echo("postmax: stopped. Nothing was written.", err=True)
        raise typer.Exit(stop.exit_code) from None
    return False


def _tell_before(rows: FitRows) -> None:
    """Print what a person should know about the data before a long training."""
    if rows.left_out:
        typer.echo(printable(f"postmax: note: {left_out_in_words(rows.left_out)}"), err=True)
    for one in rows.findings:
        typer.echo(printable(f"postmax: {one.severity}: {one}"), err=True)


def tell_facts(facts: Mapping[str, str]) -> None:
    """Print facts with their names, one on a line."""
    for name, value in facts.items():
        typer.echo(printable(f"{name:14s} {value}"))
