"""What `postmax fit` does."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import typer

from postmax.cli.live import show_stages
from postmax.cli.options import TableOptions
from postmax.cli.reading import as_reading, tell_notes
from postmax.cli.stopping import Stopped
from postmax.data.embedding.image_embedding import USUAL
from postmax.data.own import fingerprint, is_table
from postmax.duration import in_words
from postmax.errors import InputError
from postmax.files import existing_file
from postmax.fitting import FitFolder, fit_file
from postmax.fitting.fit import FitRecord
from postmax.report.fit import words
from postmax.report.fit_page import write_fit_page
from postmax.version import __version__

_SHOWN = 5


def fit(
    file: Path,
    options: TableOptions,
    *,
    network: str | None,
    seed: int,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Train a classifier on a file or folder, and write the model, what is believed about each label, and a page."""
    source = file.expanduser()
    source = source.resolve() if source.is_dir() else existing_file(source)
    folder = FitFolder(out or Path("postmax-models") / (source.name if source.is_dir() else source.stem))
    reading = as_reading(options)
    if network is not None and is_table(source):
        raise InputError(f"{file}: --embedding is for images, but this is a table.")
    made_from = {
        "version": __version__,
        "sha256": fingerprint(source),
        "reading": {**vars(reading), "drop": list(reading.drop), "missing": options.missing},
        "embedding": network,
        "seed": seed,
    }
    before = folder.made_from()
    if before == made_from and not force:
        _tell(folder, as_json, "already done; --force does it again")
        return
    if before is not None and not force:
        raise InputError(f"{folder.path} holds another model; give another --out, or --force to replace it.")
    folder.refuse_other_files()
    folder.refuse_no_place()
    try:
        _fit(source, options, folder, made_from, quiet=as_json)
    except Stopped as stop:
        typer.echo("postmax: stopped. Nothing was written.", err=True)
        raise typer.Exit(stop.exit_code) from None
    _tell(folder, as_json)


def _fit(source: Path, options: TableOptions, folder: FitFolder, made_from: dict[str, Any], *, quiet: bool) -> None:
    with show_stages(quiet=quiet):
        found = fit_file(
            source,
            as_reading(options),
            keeps_missing=options.missing is None,
            seed=made_from["seed"],
            say=tell_notes,
            network=made_from["embedding"] or USUAL,
        )
    folder.begin()
    folder.write(found)
    write_fit_page(found.record, folder.labels(), folder.path)
    folder.finish(found.record, made_from)


def _tell(folder: FitFolder, as_json: bool, remark: str = "") -> None:
    record, labels = folder.record(), folder.labels()
    if as_json:
        typer.echo(json.dumps({**record, "folder": str(folder.path)}))
        return
    for name, value in _facts(record, labels).items():
        typer.echo(f"{name:14s} {value}")
    seconds = f"trained in {in_words(record['seconds'])}"
    typer.echo(f"{'model':14s} {folder.path} ({remark or seconds})")
    typer.echo(f"{'all labels':14s} {folder.path / 'labels.csv'}\n{'page':14s} {folder.path / 'report.html'}")
    typer.echo(f"{'predict':14s} postmax predict {shlex.quote(str(folder.path))} {_new_rows(record)}")


def _facts(record: FitRecord, labels: list[dict[str, str]]) -> dict[str, str]:
    facts = {
        "data": words.data_in_words(record),
        "wrong labels": words.noise_in_words(record),
        "accuracy": words.accuracy_in_words(record),
    }
    problems = sum(one["severity"] == "problem" for one in record["findings"])
    if problems:
        facts["look first"] = words.problems_in_words(problems)
    if record["cannot_tell"]:
        return facts
    facts["confused"] = words.confusions_in_words(record)
    worst = [row for row in labels[:_SHOWN] if row["given"] != row["suggested"]]
    if worst:
        unit = next(iter(worst[0]))
        shown = (f"{unit} {row[unit]} {row['given']} → {row['suggested']}" for row in worst)
        facts["most doubtful"] = ", ".join(shown)
    return facts


def _new_rows(record: FitRecord) -> str:
    if record["embedding"] is not None:
        return "new-images"
    return "new.npz" if record["table"] is None else "new.csv"
