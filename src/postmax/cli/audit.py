"""What `postmax audit` does."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import typer

from postmax.auditing.folder import AuditFolder
from postmax.auditing.from_fit import AuditRecord, audit_fit
from postmax.cli.check import on_a_terminal
from postmax.cli.live import show_stages
from postmax.cli.options import TableOptions
from postmax.cli.reading import as_reading, tell_notes
from postmax.cli.stopping import Stopped
from postmax.data.embedding.image_embedding import USUAL
from postmax.data.own import fingerprint, is_table
from postmax.duration import in_words
from postmax.errors import InputError
from postmax.files import existing_file
from postmax.fitting import fit_file
from postmax.report.audit_page import changes_in_words, findings_of, issues_in_words, write_audit_page
from postmax.report.fit import words
from postmax.report.numbers import one_per_cent
from postmax.version import __version__

_SHOWN = 10
TOO_MANY = 3


def audit(
    file: Path,
    options: TableOptions,
    *,
    network: str | None,
    seed: int,
    out: Path | None,
    fail_above: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Judge the labels of a file or folder, and write the doubtful rows, corrected labels, a page and the model."""
    limit = None if fail_above is None else share(fail_above)
    source = file.expanduser()
    source = source.resolve() if source.is_dir() else existing_file(source)
    folder = AuditFolder(out or Path("postmax-audits") / (source.name if source.is_dir() else source.stem))
    reading = as_reading(options)
    if network is not None and is_table(source):
        raise InputError(f"{file}: --embedding is for images, but this is a table.")
    made_from = {
        "version": __version__,
        "sha256": fingerprint(source),
        "name": source.name,
        "reading": {**vars(reading), "drop": list(reading.drop), "missing": options.missing},
        "embedding": network,
        "seed": seed,
    }
    before = folder.made_from()
    if before is not None and before != made_from and not force:
        raise InputError(f"{folder.path} holds another audit; give another --out, or --force to replace it.")
    done = before == made_from and not force
    if not done:
        folder.refuse_other_files()
        folder.refuse_no_place()
        try:
            _audit(source, options, folder, made_from, quiet=as_json)
        except Stopped as stop:
            typer.echo("postmax: stopped. Nothing was written.", err=True)
            raise typer.Exit(stop.exit_code) from None
    record = folder.record()
    if as_json:
        typer.echo(json.dumps({**record, "folder": str(folder.path)}))
    else:
        _tell(record, folder, "already done; --force does it again" if done else "")
    if limit is not None:
        _judge(record, limit)


def _audit(source: Path, options: TableOptions, folder: AuditFolder, made_from: dict[str, Any], *, quiet: bool) -> None:
    reading = as_reading(options)
    with show_stages(quiet=quiet):
        found = fit_file(
            source,
            reading,
            keeps_missing=options.missing is None,
            seed=made_from["seed"],
            say=tell_notes,
            network=made_from["embedding"] or USUAL,
        )
        audited = audit_fit(found)
    folder.begin()
    record = folder.write_audit(audited, source, reading)
    write_audit_page(record, folder.labels(), folder.path)
    folder.finish(record, made_from)


def _tell(record: AuditRecord, folder: AuditFolder, remark: str) -> None:
    facts = {
        "data": words.data_in_words(record),
        "wrong labels": words.noise_in_words(record),
        "confused": words.confusions_in_words(record),
        "look at": issues_in_words(record),
        "corrected": changes_in_words(record),
        "folder": f"{folder.path} ({remark or 'in ' + in_words(record['seconds'])})",
        "page": str(folder.path / "report.html"),
    }
    for name, value in facts.items():
        typer.echo(on_a_terminal(f"{name:14s} {value}"))
    before = set(record["notes"])
    for one in findings_of(record):
        text = f"{one['text']} {one['remedy']}".strip()
        if text not in before:  # it was told before the training
            typer.echo(on_a_terminal(f"{one['kind']:14s} {text}"))
    if record["cannot_tell"]:
        return
    worst = [row for row in folder.labels()[:_SHOWN] if row["given"] != row["suggested"]]
    if worst:
        typer.echo("worst rows")
    for row in worst:
        wrong = one_per_cent(1 - float(row["p_right"]))
        unit, name = next(iter(row.items()))
        typer.echo(on_a_terminal(f"  {unit} {name}: {row['given']} → {row['suggested']} (wrong with {wrong})"))


def _judge(record: AuditRecord, limit: float) -> None:
    """End with code 3 if surely too many labels are wrong.

    The lower end of the interval is judged: a pipeline should stop because labels are wrong, and not because the
    features cannot tell ambiguous rows from mislabelled ones.
    """
    low = record["estimate"]["noise_rate_interval"][0]
    if record["cannot_tell"]:
        typer.echo(
            "postmax: note: --fail-above was not judged, because nothing can be told about the labels.", err=True
        )
    elif low > limit:
        typer.echo(
            f"postmax: at least {one_per_cent(low)} of the labels are wrong, more than {one_per_cent(limit)}.", err=True
        )
        raise typer.Exit(TOO_MANY)


def share(text: str) -> float:
    """Return a share that was typed as 5% or 0.05.

    Raises:
        InputError: If it is something else.

    Example:
        >>> share("5%"), share("0.05")
        (0.05, 0.05)
    """
    number, is_percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        found = float(number) / (100 if is_percent else 1)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise InputError(f"--fail-above is a share such as 5% or 0.05, not {text!r}.")
    return found
