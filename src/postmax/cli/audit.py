"""What `postmax audit` does."""

from __future__ import annotations

import json
import math
from pathlib import Path

import typer

from postmax.auditing.folder import AuditFolder
from postmax.auditing.from_fit import AuditRecord, audit_fit
from postmax.cli.fitting import ALREADY, Request, complete, tell_facts
from postmax.cli.options import TableOptions
from postmax.cli.text import printable
from postmax.duration import in_words
from postmax.errors import InputError
from postmax.fitting import Fit
from postmax.fitting.folder import PAGE
from postmax.report.audit_page import changes_in_words, issues_in_words, write_audit_page
from postmax.report.fit import words
from postmax.report.numbers import one_per_cent

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
    request = Request.of(file, options, network, seed)
    folder = AuditFolder(out or Path("postmax-audits") / request.name)

    def write(found: Fit) -> AuditRecord:
        record = folder.write_audit(audit_fit(found), request.source, request.reading)
        write_audit_page(record, folder.labels(), folder.path)
        return record

    done = complete(folder, request, write, what="audit", force=force, quiet=as_json)
    record = folder.record()
    if as_json:
        typer.echo(json.dumps({**record, "folder": str(folder.path)}))
    else:
        _tell(record, folder, ALREADY if done else f"in {in_words(record['seconds'])}")
    if limit is not None:
        _judge(record, limit)


def _tell(record: AuditRecord, folder: AuditFolder, remark: str) -> None:
    tell_facts(
        {
            "data": words.data_in_words(record),
            "wrong labels": words.noise_in_words(record),
            "confused": words.confusions_in_words(record),
            "look at": issues_in_words(record),
            "corrected": changes_in_words(record),
            "folder": f"{folder.path} ({remark})",
            "page": str(folder.path / PAGE),
        }
    )
    for one in record["findings"]:
        tell_facts({one["kind"]: f"{one['text']} {one['remedy']}".strip()})
    if record["cannot_tell"]:
        return
    worst = [row for row in folder.labels()[:_SHOWN] if row["given"] != row["suggested"]]
    if worst:
        typer.echo("worst rows")
    for row in worst:
        wrong = one_per_cent(float(row["p_wrong"]))
        unit, name = next(iter(row.items()))
        typer.echo(printable(f"  {unit} {name}: {row['given']} → {row['suggested']} (wrong with {wrong})"))


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
